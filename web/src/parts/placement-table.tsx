// placement-table.tsx - every op and the device it really runs on, and why there.

import { useState } from "preact/hooks";

import * as api from "../api";
import { useLoad } from "../hooks";
import type { Job } from "../types";
import { ProblemNotice } from "./problem";
import { deviceOf, WhyThere } from "./why-there";

const ROWS_MAX = 500;

export function PlacementTable({ job }: { job: Job }): preact.JSX.Element {
    const { value, error, reload } = useLoad(() => api.placement(job.id), [job.id, job.state]);
    const [find, setFind] = useState("");
    if (error) return <ProblemNotice error={error} retry={reload} />;
    if (value && value.length === 0)
        return <p class="muted">Placement is decided when the job starts; it is {job.state} now.</p>;
    const wanted = find.toLowerCase();
    const found = (value ?? []).filter((row) => `${row.node} ${row.op} ${row.device}`.toLowerCase().includes(wanted));
    return (
        <>
            <label class="field">
                <span>
                    Find an op, a node or a device ({found.length} of {value?.length ?? 0})
                </span>
                <input value={find} onInput={(event) => setFind(event.currentTarget.value)} placeholder="conv2d, MatMul, CPU:0" />
            </label>
            <div class="wide">
                <table>
                    <thead>
                        <tr>
                            <th>Node</th>
                            <th>Op</th>
                            <th>Device</th>
                            <th>Why there</th>
                        </tr>
                    </thead>
                    <tbody>
                        {found.slice(0, ROWS_MAX).map((row) => (
                            <tr key={row.node}>
                                <td class="mono break">{row.node}</td>
                                <td class="mono">{row.op}</td>
                                <td class="mono" title={row.device}>
                                    {deviceOf(row.device)}
                                </td>
                                <td class="muted">
                                    <WhyThere placed={row} />
                                </td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
            {found.length > ROWS_MAX ? <p class="muted">The first {ROWS_MAX} are shown; narrow the search to see others.</p> : null}
        </>
    );
}
