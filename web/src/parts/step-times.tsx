// step-times.tsx - where the time of a step goes: input, the work of each task, and who waits for whom.

import { useEffect } from "preact/hooks";

import * as api from "../api";
import { bytes, milliseconds } from "../format";
import { useLoad } from "../hooks";
import { subscribe } from "../live";
import type { Job, StepTimes, TaskTimes } from "../types";
import { isTerminal } from "../types";
import { ProblemNotice } from "./problem";

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

function percent(part: number, whole: number): string {
    return whole > 0 ? `${Math.round((100 * part) / whole)} %` : "–";
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

function TaskRow({ task, us }: { task: TaskTimes; us: number }): preact.JSX.Element {
    const works = Math.max(0, task.us - task.wait_us);
    const share = (part: number): string => `${Math.min(100, us > 0 ? (100 * part) / us : 0)}%`;
    const received = task.from.reduce((sum, from) => sum + from.bytes, 0);
    const said = `${task.task} works ${milliseconds(works)} and waits ${milliseconds(task.wait_us)}; the rest of the step is calls`;
    return (
        <tr>
            <td class="mono">{task.task}</td>
            <td class="spent-cell">
                <div class="spent" role="img" aria-label={said} title={said}>
                    <i class="works" style={{ width: share(works) }} />
                    <i class="waits" style={{ width: share(task.wait_us) }} />
                </div>
            </td>
            <td class="right">{milliseconds(works)}</td>
            <td class="right">
                {milliseconds(task.wait_us)} <span class="muted">{percent(task.wait_us, us)}</span>
            </td>
            <td class="right">{bytes(Math.round(received))}</td>
        </tr>
    );
}

function Matrix({ tasks }: { tasks: TaskTimes[] }): preact.JSX.Element {
    const names = tasks.map((task) => task.task);
    const cell = (task: TaskTimes, name: string): preact.JSX.Element => {
        const from = task.from.find((one) => one.task === name);
        if (!from) return <td class="right muted">{task.task === name ? "" : "–"}</td>;
        return (
            <td class="right" title={`${from.tensors} tensors a step`}>
                {milliseconds(from.wait_us)} <span class="muted">{bytes(Math.round(from.bytes))}</span>
            </td>
        );
    };
    return (
        <section class="panel">
            <header>
                <h2>Who waits for whom</h2>
            </header>
            <p class="muted">Each row is a task that waits; the columns are whom it waits for, how long in a step, and how much comes.</p>
            <div class="wide slim">
                <table>
                    <thead>
                        <tr>
                            <th />
                            {names.map((name) => (
                                <th key={name} class="right mono">
                                    {name}
                                </th>
                            ))}
                        </tr>
                    </thead>
                    <tbody>
                        {tasks.map((task) => (
                            <tr key={task.task}>
                                <th class="mono">{task.task}</th>
                                {names.map((name) => (
                                    <>{cell(task, name)}</>
                                ))}
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
        </section>
    );
}

export function StepTimesTab({ job }: { job: Job }): preact.JSX.Element {
    const { value, error, reload } = useLoad(() => api.times(job.id), [job.id, job.state]);
    useEffect(() => (isTerminal(job.state) ? undefined : subscribe("job.placement", job.id, reload, reload)), [job.id, job.state]);
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
    const longest = Math.max(...value.tasks.map((task) => task.us), value.us);
    return (
        <>
            <Sentence times={value} />
            <div class="panels stacked">
                <section class="panel">
                    <header>
                        <h2>Tasks</h2>
                        <span class="space" />
                        <span class="key works">works</span>
                        <span class="key waits">waits</span>
                    </header>
                    <div class="wide slim">
                        <table>
                            <thead>
                                <tr>
                                    <th>Task</th>
                                    <th>Of a step</th>
                                    <th class="right">Works</th>
                                    <th class="right">Waits</th>
                                    <th class="right">Receives</th>
                                </tr>
                            </thead>
                            <tbody>
                                {value.tasks.map((task) => (
                                    <TaskRow key={task.task} task={task} us={longest} />
                                ))}
                            </tbody>
                        </table>
                    </div>
                </section>
                {value.tasks.length > 1 ? <Matrix tasks={value.tasks} /> : null}
            </div>
        </>
    );
}
