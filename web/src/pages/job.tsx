// job.tsx - one job: is it running, is it learning, when is it done; and below, the tabs.

import { useEffect, useState } from "preact/hooks";

import * as api from "../api";
import { ago, count, duration, metric, seconds } from "../format";
import { go, useLoad, useNow } from "../hooks";
import { subscribe } from "../live";
import { Chart } from "../parts/chart";
import { Hardware } from "../parts/hardware";
import { GraphTab } from "../parts/graph-tab";
import { LogTail } from "../parts/log-tail";
import { PlacementTable } from "../parts/placement-table";
import { ProblemNotice } from "../parts/problem";
import { ClusterOverview } from "../parts/cluster";
import { ProgramFigures, ProgramOverview } from "../parts/program";
import { Bar, StateMark } from "../parts/state";
import { StepTimesPanel, StepTimesTab } from "../parts/step-times";
import { Sure } from "../parts/sure";
import { merge, pointsOf, withPoints } from "../points";
import { useMay } from "../session";
import type { Job, Series } from "../types";
import { isTerminal } from "../types";

const TABS = ["overview", "graph", "placement", "time", "logs", "spec", "events"];
const PROGRAM_TABS = ["overview", "logs", "spec", "events"];

function useJob(id: string): { job: Job | null; series: Series[]; error: api.ApiError | null; reload: () => void } {
    const job = useLoad(() => api.job(id), [id]);
    const series = useLoad(() => api.metrics(id), [id]);
    useEffect(() => {
        const stopState = subscribe("job.state", id, job.reload, job.reload);
        const stopMetrics = subscribe(
            "job.metrics",
            id,
            (events) => {
                const points = pointsOf(events);
                series.set((value) => merge(value ?? [], points));
                job.set((value) => (value ? withPoints(value, points) : value));
            },
            series.reload,
        );
        return () => {
            stopState();
            stopMetrics();
        };
    }, [id]);
    return { job: job.value, series: series.value ?? [], error: job.error, reload: job.reload };
}

export function JobPage({ id, tab }: { id: string; tab: string }): preact.JSX.Element {
    const { job, series, error, reload } = useJob(id);
    if (error && !job) return <ProblemNotice error={error} retry={reload} />;
    if (!job) return <p class="muted">Loading…</p>;
    return (
        <>
            <Top job={job} tab={tab} />
            {tab === "overview" ? <Overview job={job} series={series} /> : null}
            {tab === "overview" ? <Hardware job={job} /> : null}
            {tab === "graph" ? <GraphTab job={job} /> : null}
            {tab === "placement" ? <PlacementTable job={job} /> : null}
            {tab === "time" ? <StepTimesTab job={job} /> : null}
            {tab === "logs" ? <LogTail job={job} lines={5000} /> : null}
            {tab === "spec" ? <Spec job={job} /> : null}
            {tab === "events" ? <Events job={job} /> : null}
        </>
    );
}

function Actions({ job }: { job: Job }): preact.JSX.Element | null {
    const [problem, setProblem] = useState<api.ApiError | null>(null);
    const clone = (
        <button
            class="button"
            title="A new job of the same spec"
            onClick={() => {
                api.clone(job.id).then((other) => go(`/jobs/${other.number}`), setProblem);
            }}
        >
            Clone
        </button>
    );
    const trouble = problem ? <span class="error-text">{problem.message}</span> : null;
    if (isTerminal(job.state))
        return (
            <>
                {trouble}
                {clone}
                <Sure
                    label="Remove"
                    title="With its logs, metrics and checkpoints; nobody finds it any more"
                    act={() => {
                        api.remove(job.id).then(() => go("/jobs"), setProblem);
                    }}
                />
            </>
        );
    const act = (call: (id: string) => Promise<void>) => () => {
        call(job.id).catch(setProblem);
    };
    return (
        <>
            {trouble}
            {job.paused ? (
                <button class="button" title="Waits for its turn again, and goes on from its checkpoint" onClick={act(api.resume)}>
                    Resume
                </button>
            ) : (
                <button class="button" title="Writes a checkpoint, gives its nodes back and waits" disabled={job.state === "stopping"} onClick={act(api.pause)}>
                    Pause
                </button>
            )}
            {clone}
            <button class="button" title="Writes a checkpoint, then ends" disabled={job.state === "stopping"} onClick={act(api.cancel)}>
                Stop
            </button>
            <button class="button" title="Ends at once, without a checkpoint" onClick={act(api.kill)}>
                Kill
            </button>
        </>
    );
}

const METRICS_IN_HEAD = 3;

/* The metrics among the names of series; accuracy while nothing is known, which most jobs have. */
function metricNames(series: string[]): string[] {
    const names = new Set(series.map((name) => name.replace(/^val_/, "")));
    names.delete("loss");
    names.delete("examples_per_second");
    return names.size > 0 ? [...names].sort() : ["accuracy"];
}

/* "sparse_top_k_categorical_accuracy" as people say it. */
function spoken(name: string): string {
    return name.replaceAll("_", " ");
}

function heading(name: string): string {
    return (name[0] ?? "").toUpperCase() + spoken(name.slice(1));
}

function Figures({ job, ran }: { job: Job; ran: number | null }): preact.JSX.Element {
    const speed = job.last["examples_per_second"];
    const left =
        job.state === "running" && job.step && job.steps && ran ? (ran / job.step) * (job.steps - job.step) : null;
    const metrics = metricNames(Object.keys(job.last));
    return (
        <div class="figures">
            <Bar state={job.state} step={job.step} steps={job.steps} />
            <span>
                step <b>{count(job.step)}</b>
                {job.steps ? ` of ${count(job.steps)}` : ""}
            </span>
            {left !== null ? <span>{duration(left)} left</span> : null}
            <span>
                <b>{speed === undefined ? "–" : count(Math.round(speed))}</b> examples/s
            </span>
            <span>
                loss <b>{metric(job.last["loss"])}</b>
            </span>
            {metrics.slice(0, METRICS_IN_HEAD).map((name) => (
                <span key={name}>
                    {spoken(name)} <b>{metric(job.last[name])}</b>
                    {job.last[`val_${name}`] !== undefined ? (
                        <>
                            {" "}
                            · validation <b>{metric(job.last[`val_${name}`])}</b>
                        </>
                    ) : null}
                </span>
            ))}
        </div>
    );
}

function Top({ job, tab }: { job: Job; tab: string }): preact.JSX.Element {
    const now = useNow();
    const may = useMay(job.project);
    const ran = seconds(job.started_at, job.ended_at, now);
    return (
        <div class="top">
            <div class="head">
                <h1>
                    {job.name} <span class="muted">#{job.number}</span>
                </h1>
                <StateMark state={job.state} />
                <span class="muted" title={job.started_at ?? job.created_at}>
                    {job.started_at ? duration(ran) : `submitted ${ago(job.created_at, now)}`}
                    {job.attempt > 1 ? ` · attempt ${job.attempt}` : ""}
                    {job.nodes.length > 0 ? ` · ${job.nodes.join(", ")}` : ""}
                </span>
                <span class="space" />
                {may ? <Actions job={job} /> : null}
            </div>
            {job.program ? <ProgramFigures job={job} /> : job.cluster ? null : <Figures job={job} ran={ran} />}
            <nav class="tabs" aria-label="Job">
                {(job.program || job.cluster ? PROGRAM_TABS : TABS).map((name) => (
                    <a key={name} href={`/jobs/${job.number}${name === "overview" ? "" : `/${name}`}`} aria-current={name === tab ? "page" : undefined}>
                        {name[0]?.toUpperCase()}
                        {name.slice(1)}
                    </a>
                ))}
            </nav>
        </div>
    );
}

// Why it waits or how it ended; of one that runs, only that a task is away.
function Why({ job }: { job: Job }): preact.JSX.Element | null {
    const running = job.state === "running";
    const shown = running || job.state === "queued" || job.state === "failed" || job.state === "succeeded";
    const { value, reload } = useLoad(() => (shown ? api.explain(job.id) : Promise.resolve(null)), [job.id, job.state, job.attempt]);
    useEffect(() => (running ? subscribe("job.events", job.id, reload, reload) : undefined), [job.id, running]);
    if (!shown || !value || !value.text || (running && value.code !== "TASK_AWAY")) return null;
    return (
        <div class={`notice ${job.state === "failed" ? "bad" : job.state === "queued" || running ? "wait" : ""}`}>
            <p>{value.text}</p>
            {(value.blockers ?? []).map((blocker) => (
                <p class="muted" key={blocker.text}>
                    {blocker.text}
                </p>
            ))}
            {(value.suggestions ?? []).map((suggestion) => (
                <p key={suggestion}>{suggestion}</p>
            ))}
        </div>
    );
}

function Overview({ job, series }: { job: Job; series: Series[] }): preact.JSX.Element {
    const waiting =
        job.state === "succeeded" || job.state === "failed" || job.state === "cancelled"
            ? `The job ended (${job.state}) without a point.`
            : job.state === "running"
              ? "Running; the first point comes with the first steps."
              : `The job is ${job.state}; points come when it runs.`;
    if (job.program)
        return (
            <>
                <Why job={job} />
                <ProgramOverview job={job} series={series} />
            </>
        );
    if (job.cluster)
        return (
            <>
                <Why job={job} />
                <ClusterOverview job={job} />
            </>
        );
    const named = (...names: string[]): Series[] => series.filter((one) => names.includes(one.name));
    return (
        <>
            <Why job={job} />
            <div class="panels">
                <section class="panel">
                    <header>
                        <h2>Loss</h2>
                    </header>
                    <Chart series={named("loss", "val_loss")} waiting={waiting} />
                </section>
                {metricNames(series.map((one) => one.name)).map((name) => (
                    <section class="panel" key={name}>
                        <header>
                            <h2>{heading(name)}</h2>
                        </header>
                        <Chart series={named(name, `val_${name}`)} waiting={waiting} />
                    </section>
                ))}
                <section class="panel">
                    <header>
                        <h2>Examples per second</h2>
                    </header>
                    <Chart series={named("examples_per_second")} waiting={waiting} />
                </section>
                <StepTimesPanel job={job} />
                <section class="panel">
                    <header>
                        <h2>Log</h2>
                        <span class="space" />
                        <a href={`/jobs/${job.number}/logs`}>all of it</a>
                    </header>
                    <LogTail job={job} lines={200} short />
                </section>
            </div>
        </>
    );
}

function Spec({ job }: { job: Job }): preact.JSX.Element {
    const { value, error } = useLoad(() => api.spec(job.id), [job.id]);
    if (error) return <ProblemNotice error={error} />;
    return <pre class="log">{value ? JSON.stringify(value, null, 2) : "Loading…"}</pre>;
}

function Events({ job }: { job: Job }): preact.JSX.Element {
    const { value, error, reload } = useLoad(() => api.history(job.id), [job.id, job.state]);
    if (error) return <ProblemNotice error={error} retry={reload} />;
    return (
        <table>
            <thead>
                <tr>
                    <th>Time</th>
                    <th>Event</th>
                    <th>What happened</th>
                </tr>
            </thead>
            <tbody>
                {(value ?? []).map((event) => (
                    <tr key={event.seq}>
                        <td class="muted">{event.time.replace("T", " ").replace("Z", "")}</td>
                        <td>{event.type}</td>
                        <td>{event.text}</td>
                    </tr>
                ))}
            </tbody>
        </table>
    );
}
