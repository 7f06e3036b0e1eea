// step-times.tsx - where the time of a step goes: input, the work of each task, who waits for whom and gets what.

import { useEffect, useState } from "preact/hooks";

import * as api from "../api";
import { bytes, milliseconds } from "../format";
import { useLoad, type Loaded } from "../hooks";
import { subscribe } from "../live";
import type { Arrival, Job, StepTimes, TaskTimes } from "../types";
import { isTerminal } from "../types";
import { ProblemNotice } from "./problem";
import { TaskMatrix } from "./task-matrix";

const ROWS_OF_OVERVIEW = 6;
const ROWS_AT_FIRST = 16;

// As it is told while the job trains, without asking again.
function useStepTimes(job: Job): Loaded<StepTimes> {
    const times = useLoad(() => api.times(job.id), [job.id, job.state]);
    const ended = isTerminal(job.state);
    useEffect(() => {
        if (ended) return undefined;
        return subscribe(
            "job.timeline",
            job.id,
            (events) => {
                const newest = events[events.length - 1];
                if (newest) times.set(() => newest.data as StepTimes);
            },
            times.reload,
        );
    }, [job.id, ended]);
    return times;
}

/** The task that the others wait for longest, with how long that is in all. */
function latest(tasks: TaskTimes[]): { task: string; us: number } | null {
    const sums = new Map<string, number>();
    for (const task of tasks) for (const from of task.from) sums.set(from.task, (sums.get(from.task) ?? 0) + from.wait_us);
    const most = [...sums].sort((a, b) => b[1] - a[1])[0];
    return most ? { task: most[0], us: most[1] } : null;
}

/** Who is much later than the others: as STRAGGLER_FACTOR in runtime/train/stragglers.h. */
function straggler(times: StepTimes): preact.JSX.Element | null {
    const late = times.arrivals?.find((one) => one.others_us > 0 && one.us > 1.5 * one.others_us && one.us - one.others_us > 500);
    if (!late) return null;
    return (
        <>
            <b>{late.task}</b> is a straggler: its share of a step takes {milliseconds(late.us)}, the others&apos; {milliseconds(late.others_us)}.{" "}
        </>
    );
}

function Sentence({ times }: { times: StepTimes }): preact.JSX.Element {
    const most = latest(times.tasks);
    const input = times.input_us / (times.us + times.input_us);
    return (
        <p>
            A step takes <b>{milliseconds(times.us)}</b>
            {input > 0.01 ? `, and waits ${milliseconds(times.input_us)} for its input` : ""}.{" "}
            {input > 0.1 ? "The data comes too slowly: simpler augmentation or a faster disk would help. " : ""}
            {most && times.tasks.length > 1 ? (
                <>
                    The others wait longest for <b>{most.task}</b>: {milliseconds(most.us)} a step between them.
                </>
            ) : null}{" "}
            {straggler(times)}
            <span class="muted">
                Means of {times.steps} steps, up to step {times.step}.
            </span>
        </p>
    );
}

/** How long it waits for its batch; where workers do not each have one the first loads that of all. */
function inputOf(task: TaskTimes, times: StepTimes): number {
    const own = times.arrivals?.find((one) => one.task === task.task)?.input_us;
    return own ?? (task.task === "worker:0" ? times.input_us : 0);
}

/** What a task does in a step, in microseconds. */
function parts(task: TaskTimes, times: StepTimes): { [part: string]: number } {
    const sends = task.send_us ?? 0;
    const receives = task.receive_us ?? 0;
    return {
        input: inputOf(task, times),
        works: Math.max(0, task.us - task.wait_us - sends),
        sends,
        receives,
        waits: Math.max(0, task.wait_us - receives),
    };
}

const PARTS = ["input", "works", "sends", "receives", "waits"];

function Keys(): preact.JSX.Element {
    return (
        <div class="keys">
            {PARTS.map((part) => (
                <span key={part} class={`key ${part}`}>
                    {part}
                </span>
            ))}
        </div>
    );
}

/** Of several that it waits for the one that it waits for most. */
function mostOf(task: TaskTimes): TaskTimes["from"][number] | null {
    return task.from.reduce<TaskTimes["from"][number] | null>((most, from) => (from.wait_us > (most?.wait_us ?? 0) ? from : most), null);
}

function TaskRow({ task, times, whole, short }: { task: TaskTimes; times: StepTimes; whole: number; short?: boolean }): preact.JSX.Element {
    const part = parts(task, times);
    const most = mostOf(task);
    const said = `${task.task} ${PARTS.map((name) => `${name} ${milliseconds(part[name] ?? 0)}`).join(", ")}`;
    return (
        <tr>
            <td class="mono">{task.task}</td>
            <td class="spent-cell">
                <div class="spent" role="img" aria-label={said} title={said}>
                    {PARTS.map((name) => (
                        <i key={name} class={name} style={{ width: `${Math.min(100, whole > 0 ? (100 * (part[name] ?? 0)) / whole : 0)}%` }} />
                    ))}
                </div>
            </td>
            {short ? null : PARTS.map((name) => (
                <td key={name} class="right">
                    {milliseconds(part[name] ?? 0)}
                </td>
            ))}
            <td class="mono">
                {most ? most.task : "–"} {most ? <span class="muted">{milliseconds(most.wait_us)}</span> : null}
            </td>
            {short ? null : <td class="right">{bytes(Math.round(task.from.reduce((sum, from) => sum + from.bytes, 0)))}</td>}
        </tr>
    );
}

function TaskTable({ times, rows, short }: { times: StepTimes; rows: TaskTimes[]; short?: boolean }): preact.JSX.Element {
    const whole = Math.max(...times.tasks.map((task) => task.us + (parts(task, times)["input"] ?? 0)), times.us);
    return (
        <div class="wide slim">
            <table>
                <thead>
                    <tr>
                        <th>Task</th>
                        <th>Of a step</th>
                        {short ? null : PARTS.map((name) => (
                            <th key={name} class="right">
                                {(name[0] ?? "").toUpperCase() + name.slice(1)}
                            </th>
                        ))}
                        <th>Waits most for</th>
                        {short ? null : <th class="right">Gets</th>}
                    </tr>
                </thead>
                <tbody>
                    {rows.map((task) => (
                        <TaskRow key={task.task} task={task} times={times} whole={whole} short={short ?? false} />
                    ))}
                </tbody>
            </table>
        </div>
    );
}

/** Of each worker a line with a mark for each of the last steps: when it had done its share. */
function Arrivals({ arrivals }: { arrivals: Arrival[] }): preact.JSX.Element | null {
    const [all, setAll] = useState(false);
    const last = Math.max(...arrivals.flatMap((one) => one.recent_us ?? []), 0);
    if (last <= 0 || arrivals.length < 2) return null;
    const many = arrivals.length > ROWS_AT_FIRST;
    const shown = many && !all ? [...arrivals].sort((a, b) => b.us - a.us).slice(0, ROWS_AT_FIRST) : arrivals;
    return (
        <section class="panel">
            <header>
                <h2>When each worker is done</h2>
                <span class="space" />
                <span class="muted">0 to {milliseconds(last)} after the step began</span>
            </header>
            <p class="muted">A mark for each of the last steps, without what a worker waits for other workers; the line is the mean. Who is far right is waited for.</p>
            <div class="arrivals">
                {shown.map((one) => {
                    const steps = (one.recent_us ?? []).filter((us) => us >= 0);
                    const said = `${one.task} is done ${milliseconds(one.us)} after the step began, ${milliseconds(one.max_us)} at most`;
                    return (
                        <div key={one.task} class="arrival" title={said}>
                            <span class="mono">{one.task}</span>
                            <div role="img" aria-label={said}>
                                {steps.map((us, i) => (
                                    <i key={i} style={{ left: `${(100 * us) / last}%` }} />
                                ))}
                                <b style={{ left: `${Math.min(100, (100 * one.us) / last)}%` }} />
                            </div>
                            <span class="right">{milliseconds(one.us)}</span>
                        </div>
                    );
                })}
            </div>
            {many ? (
                <button class="plain" onClick={() => setAll(!all)}>
                    {all ? `Only the ${ROWS_AT_FIRST} that are last` : `The ${ROWS_AT_FIRST} that are last; show all ${arrivals.length}`}
                </button>
            ) : null}
        </section>
    );
}

/** Those that work most, when there are more than so many. */
function busiest(tasks: TaskTimes[], most: number): TaskTimes[] {
    if (tasks.length <= most) return tasks;
    return [...tasks].sort((a, b) => b.us - b.wait_us - a.us + a.wait_us).slice(0, most);
}

/** On the first page of a job. */
export function StepTimesPanel({ job }: { job: Job }): preact.JSX.Element | null {
    const { value } = useStepTimes(job);
    if (!value || value.tasks.length < 2) return null;
    const rows = busiest(value.tasks, ROWS_OF_OVERVIEW);
    const more = value.tasks.length - rows.length;
    return (
        <section class="panel">
            <header>
                <h2>Where a step&apos;s time goes</h2>
                <span class="space" />
                <a href={`/jobs/${job.number}/time`}>{more ? `all ${value.tasks.length} tasks` : "all of it"}</a>
            </header>
            <Sentence times={value} />
            <Keys />
            <TaskTable times={value} rows={rows} short />
            {more ? <p class="muted">Those that work most of {value.tasks.length}.</p> : null}
        </section>
    );
}

export function StepTimesTab({ job }: { job: Job }): preact.JSX.Element {
    const { value, error, reload } = useStepTimes(job);
    const [all, setAll] = useState(false);
    if (error) return <ProblemNotice error={error} retry={reload} />;
    if (!value) return <p class="muted">Loading…</p>;
    if (value.tasks.length === 0)
        return (
            <p class="muted">
                {isTerminal(job.state)
                    ? "The job ended before a step was measured."
                    : `Nothing has been measured yet: tasks say where their time goes after two seconds of training; the job is ${job.state}.`}
            </p>
        );
    return (
        <>
            <Sentence times={value} />
            <div class="panels stacked">
                <section class="panel">
                    <header>
                        <h2>Where a step&apos;s time goes</h2>
                        <span class="space" />
                        <Keys />
                    </header>
                    <TaskTable times={value} rows={all ? value.tasks : busiest(value.tasks, ROWS_AT_FIRST)} />
                    {value.tasks.length > ROWS_AT_FIRST ? (
                        <button class="plain" onClick={() => setAll(!all)}>
                            {all ? `Only the ${ROWS_AT_FIRST} that work most` : `The ${ROWS_AT_FIRST} that work most; show all ${value.tasks.length}`}
                        </button>
                    ) : null}
                </section>
                {value.tasks.length > 1 ? <TaskMatrix tasks={value.tasks} /> : null}
                <Arrivals arrivals={value.arrivals ?? []} />
            </div>
        </>
    );
}
