// program.tsx - what is shown of a job that runs a program: what it reports, what it leaves, what it says.

import * as api from "../api";
import { bytes, count, metric } from "../format";
import { useLoad } from "../hooks";
import type { Job, Series } from "../types";
import { Chart } from "./chart";
import { LogTail } from "./log-tail";

const FIGURES = 4;

/* Series of the same thing, over parts of the data, share a chart: train/loss, validation/loss. */
const chartOf = (name: string): string => name.replace(/^(train|training|validation|val|eval|test)\//, "");

export function ProgramFigures({ job }: { job: Job }): preact.JSX.Element {
    const names = Object.keys(job.last).sort();
    return (
        <div class="figures">
            <code class="clip" title={job.program ?? ""}>
                {job.program}
            </code>
            {job.step !== null ? (
                <span>
                    step <b>{count(job.step)}</b>
                </span>
            ) : null}
            {names.slice(0, FIGURES).map((name) => (
                <span key={name}>
                    {name} <b>{metric(job.last[name])}</b>
                </span>
            ))}
        </div>
    );
}

function Artifacts({ job }: { job: Job }): preact.JSX.Element | null {
    const { value } = useLoad(() => api.artifacts(job.id), [job.id, job.state]);
    if (!value || value.length === 0) return null;
    const several = new Set(value.map((one) => one.task)).size > 1;
    return (
        <section class="panel">
            <header>
                <h2>Artifacts</h2>
            </header>
            <table>
                <tbody>
                    {value.map((one) => (
                        <tr key={`${one.task} ${one.path}`}>
                            {several ? <td class="muted">{one.task}</td> : null}
                            <td>
                                <a href={api.artifactUrl(job.id, one)} download={one.path.split("/").pop()}>
                                    {one.path}
                                </a>
                            </td>
                            <td class="right muted">{bytes(one.size)}</td>
                        </tr>
                    ))}
                </tbody>
            </table>
        </section>
    );
}

export function ProgramOverview({ job, series }: { job: Job; series: Series[] }): preact.JSX.Element {
    const charts = [...new Set(series.map((one) => chartOf(one.name)))].sort();
    return (
        <div class="panels">
            {charts.map((name) => (
                <section class="panel" key={name}>
                    <header>
                        <h2>{name}</h2>
                    </header>
                    <Chart series={series.filter((one) => chartOf(one.name) === name)} waiting="" />
                </section>
            ))}
            <section class="panel">
                <header>
                    <h2>Log</h2>
                    <span class="space" />
                    <a href={`/jobs/${job.number}/logs`}>all of it</a>
                </header>
                <LogTail job={job} lines={200} short />
            </section>
            <Artifacts job={job} />
        </div>
    );
}
