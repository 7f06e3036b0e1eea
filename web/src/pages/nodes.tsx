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
        </>
    );
}
