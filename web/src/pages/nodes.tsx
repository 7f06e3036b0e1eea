// nodes.tsx - the machines: what each has, and how much of it is in use.

import { useEffect } from "preact/hooks";

import * as api from "../api";
import { ago, bytes } from "../format";
import { useLoad, useNow } from "../hooks";
import { subscribe } from "../live";
import { ProblemNotice } from "../parts/problem";

export function NodesPage(): preact.JSX.Element {
    const { value, error, reload } = useLoad(api.nodes, []);
    const now = useNow();
    useEffect(() => subscribe("nodes", undefined, reload, reload), []);
    return (
        <>
            <div class="head">
                <h1>Nodes</h1>
            </div>
            {error ? <ProblemNotice error={error} retry={reload} /> : null}
            {value || error ? null : <p class="muted">Loading…</p>}
            {value && value.length === 0 ? (
                <div class="empty">
                    <p>No node has joined yet.</p>
                    <p class="muted">
                        On a machine of yours: <code>trainyard agent --server ADDRESS --token TOKEN</code>
                    </p>
                </div>
            ) : null}
            {value && value.length > 0 ? (
                <div class="wide slim">
                <table>
                    <thead>
                        <tr>
                            <th>Node</th>
                            <th>State</th>
                            <th class="right">CPUs in use</th>
                            <th class="right">Memory in use</th>
                            <th class="right">GPUs in use</th>
                            <th class="right hide-narrow">Last seen</th>
                        </tr>
                    </thead>
                    <tbody>
                        {value.map((node) => (
                            <tr key={node.name}>
                                <td>{node.name}</td>
                                <td>{node.state}</td>
                                <td class="right">
                                    {node.cpus_used} of {node.cpus}
                                </td>
                                <td class="right">
                                    {bytes(node.memory_bytes_used)} of {bytes(node.memory_bytes)}
                                </td>
                                <td class="right">{node.gpus ? `${node.gpus_used} of ${node.gpus}` : "–"}</td>
                                <td class="right hide-narrow" title={node.last_seen_at}>
                                    {ago(node.last_seen_at, now)}
                                </td>
                            </tr>
                        ))}
                    </tbody>
                </table>
                </div>
            ) : null}
            <Scheduler />
        </>
    );
}

// How long the scheduler takes for a pass, and which took longest.
function Scheduler(): preact.JSX.Element | null {
    const { value } = useLoad(api.passes, []);
    const longest = value?.longest[0];
    if (!value || !longest) return null;
    const ms = (seconds: number): string => `${(seconds * 1000).toPrecision(3)} ms`;
    return (
        <details>
            <summary class="muted">
                The scheduler made {value.passes} passes, {ms(value.seconds / value.passes)} each; the longest took {ms(longest.seconds)}
            </summary>
            <div class="wide slim">
                <table>
                    <thead>
                        <tr>
                            <th>Began</th>
                            <th class="right">Took</th>
                            <th class="right">Deciding</th>
                            <th class="right">Storing</th>
                            <th class="right">Messages</th>
                            <th class="right">Decisions</th>
                            <th class="right">Nodes</th>
                        </tr>
                    </thead>
                    <tbody>
                        {value.longest.map((pass) => (
                            <tr key={`${pass.at} ${pass.seconds}`}>
                                <td>{new Date(pass.at).toLocaleString()}</td>
                                <td class="right">{ms(pass.seconds)}</td>
                                <td class="right">{ms(pass.decide_seconds)}</td>
                                <td class="right">{ms(pass.store_seconds)}</td>
                                <td class="right">{pass.messages}</td>
                                <td class="right">{pass.decisions}</td>
                                <td class="right">{pass.nodes}</td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
        </details>
    );
}
