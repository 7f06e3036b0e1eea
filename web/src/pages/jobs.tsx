// jobs.tsx - the list: each row says what one would open the job for.

import { useEffect, useState } from "preact/hooks";

import * as api from "../api";
import { ago, metric } from "../format";
import { go, useLoad, useNow } from "../hooks";
import { subscribe } from "../live";
import { ProblemNotice } from "../parts/problem";
import { Bar, StateMark } from "../parts/state";
import type { Point } from "../points";
import { pointsOf, withPoints } from "../points";
import { useMay } from "../session";
import type { Example, Job } from "../types";
import { isTerminal } from "../types";

function Row({ job: listed, now }: { job: Job; now: number }): preact.JSX.Element {
    const [points, setPoints] = useState<Point[]>([]);
    const done = isTerminal(listed.state);
    useEffect(
        () => (done ? undefined : subscribe("job.metrics", listed.id, (events) => setPoints(pointsOf(events)), () => undefined)),
        [listed.id, done],
    );
    const job = withPoints(listed, points);
    const path = `/jobs/${job.number}`;
    return (
        <tr class="link" onClick={() => go(path)}>
            <td>
                <StateMark state={job.state} />
            </td>
            <td>
                <a class="clip name" href={path} title={job.name}>
                    {job.name}
                </a>{" "}
                <span class="muted">#{job.number}</span>
            </td>
            <td class="right">{metric(job.last["loss"])}</td>
            <td class="right hide-narrow">{metric(job.last["val_accuracy"] ?? job.last["accuracy"])}</td>
            <td class="rest">
                {job.state === "queued" || (job.state === "failed" && job.reason) ? (
                    <span class={`clip ${job.state === "failed" ? "error-text" : "muted"}`} title={job.reason ?? ""}>
                        {job.reason ?? "waits for the scheduler"}
                    </span>
                ) : job.cluster ? (
                    <span class="muted">cluster for TensorFlow programs</span>
                ) : job.program ? (
                    <code class="clip muted" title={job.program}>
                        {job.program}
                    </code>
                ) : (
                    <Bar state={job.state} step={job.step} steps={job.steps} />
                )}
            </td>
            <td class="right hide-narrow">
                {job.step === null ? "–" : `${job.step}${job.steps ? ` of ${job.steps}` : ""}`}
            </td>
            <td class="right muted" title={job.created_at}>
                {ago(job.created_at, now)}
            </td>
        </tr>
    );
}

function FirstJob(): preact.JSX.Element {
    const { value, error } = useLoad(api.examples, []);
    const [problem, setProblem] = useState<api.ApiError | null>(null);
    const run = (example: Example): void => {
        api.submit(JSON.stringify(example.spec)).then((job) => go(`/jobs/${job.number}`), setProblem);
    };
    return (
        <div>
            <div class="notice">
                <p>No job has been submitted yet. Run an example, or describe your own.</p>
            </div>
            {problem || error ? <ProblemNotice error={(problem ?? error) as api.ApiError} /> : null}
            <div class="examples">
                {(value ?? []).map((example) => (
                    <div class="panel" key={example.name}>
                        <h2>{example.name}</h2>
                        <p class="muted">{example.description}</p>
                        <button class="button" onClick={() => run(example)}>
                            Run
                        </button>
                    </div>
                ))}
            </div>
        </div>
    );
}

export function JobsPage(): preact.JSX.Element {
    const { value, error, reload } = useLoad(() => api.jobs(), []);
    const [older, setOlder] = useState<{ items: Job[]; next: string | null } | null>(null);
    const now = useNow();
    const may = useMay();
    useEffect(() => {
        const look = (): void => {
            reload();
            recount();
        };
        return subscribe("job.state", undefined, look, look);
    }, []);
    const items = [...(value?.items ?? []), ...(older?.items ?? [])];
    const next = older ? older.next : (value?.next_cursor ?? null);
    const { value: tally, reload: recount } = useLoad(api.tally, []);
    return (
        <>
            <div class="head">
                <h1>Jobs</h1>
                <span class="muted">{tally ? `running ${tally.running} · queued ${tally.queued} · failed ${tally.failed}` : ""}</span>
                <span class="space" />
                {may ? (
                    <a class="button accent" href="/new">
                        New job
                    </a>
                ) : null}
            </div>
            {error ? <ProblemNotice error={error} retry={reload} /> : null}
            {value || error ? null : <p class="muted">Loading…</p>}
            {value && items.length === 0 ? may ? <FirstJob /> : <p class="muted">There is no job yet.</p> : null}
            {items.length > 0 ? (
                <div class="wide slim">
                    <table>
                        <thead>
                            <tr>
                                <th>State</th>
                                <th>Job</th>
                                <th class="right">Loss</th>
                                <th class="right hide-narrow">Accuracy</th>
                                <th>Progress</th>
                                <th class="right hide-narrow">Step</th>
                                <th class="right">Submitted</th>
                            </tr>
                        </thead>
                        <tbody>
                            {items.map((job) => (
                                <Row key={job.id} job={job} now={now} />
                            ))}
                        </tbody>
                    </table>
                </div>
            ) : null}
            {next ? (
                <p>
                    <button
                        class="button"
                        onClick={() => {
                            void api.jobs(next).then((page) => setOlder({ items: [...(older?.items ?? []), ...page.items], next: page.next_cursor }));
                        }}
                    >
                        Older jobs
                    </button>
                </p>
            ) : null}
        </>
    );
}
