// task-matrix.tsx - which task waits for which, and gets how much from it.

import { useState } from "preact/hooks";

import { bytes, milliseconds } from "../format";
import type { TaskTimes } from "../types";

const WORDS_MAX = 12; // tasks: more are squares without words

type From = TaskTimes["from"][number];

const SHOWN: { [name: string]: { value: (from: From) => number; words: (value: number) => string; says: string } } = {
    "Waits": { value: (from) => from.wait_us, words: milliseconds, says: "how long in a step it has nothing to do until something of it comes" },
    "Bytes": { value: (from) => from.bytes, words: (value) => bytes(Math.round(value)), says: "how much of it comes in a step" },
};

function Cell({ task, from, share, text }: { task: string; from: From; share: number; text: string | null }): preact.JSX.Element {
    const said = `${task} waits ${milliseconds(from.wait_us)} for ${from.task}, of that ${milliseconds(from.receive_us ?? 0)} receiving; gets ${bytes(Math.round(from.bytes))} in ${from.tensors} tensors`;
    return (
        <td class="right" title={said} aria-label={said}>
            <i class="heat" style={{ opacity: share }} />
            {text === null ? null : <span>{text}</span>}
        </td>
    );
}

/** Servers first, then workers, each by their numbers. */
function inOrder(tasks: TaskTimes[]): TaskTimes[] {
    return [...tasks].sort((a, b) => a.task.localeCompare(b.task, "en", { numeric: true }));
}

export function TaskMatrix({ tasks: unordered }: { tasks: TaskTimes[] }): preact.JSX.Element {
    const tasks = inOrder(unordered);
    const [name, setName] = useState("Waits");
    const shown = SHOWN[name] ?? SHOWN["Waits"]!;
    const most = Math.max(...tasks.flatMap((task) => task.from.map(shown.value)), 0);
    const large = tasks.length > WORDS_MAX;
    return (
        <section class="panel">
            <header>
                <h2>Which task waits for which</h2>
                <span class="space" />
                {Object.keys(SHOWN).map((one) => (
                    <button key={one} class="plain" aria-pressed={one === name} onClick={() => setName(one)}>
                        {one}
                    </button>
                ))}
            </header>
            <p class="muted">
                A row is a task, a column another one: {shown.says}. The stronger the colour, the more{large ? "; point at a square for its numbers" : ""}.
            </p>
            <div class="wide slim">
                <table class={large ? "matrix large" : "matrix"}>
                    <thead>
                        <tr>
                            <th />
                            {tasks.map((task) => (
                                <th key={task.task} class={large ? "mono" : "mono right"}>
                                    <span>{task.task}</span>
                                </th>
                            ))}
                        </tr>
                    </thead>
                    <tbody>
                        {tasks.map((task) => {
                            const all = new Map(task.from.map((from) => [from.task, from]));
                            return (
                                <tr key={task.task}>
                                    <th class="mono">{task.task}</th>
                                    {tasks.map((other) => {
                                        const from = all.get(other.task);
                                        if (!from) return <td key={other.task} class={other.task === task.task ? "itself" : "right muted"}>{large || other.task === task.task ? "" : "–"}</td>;
                                        return <Cell key={other.task} task={task.task} from={from} share={most > 0 ? shown.value(from) / most : 0} text={large ? null : shown.words(shown.value(from))} />;
                                    })}
                                </tr>
                            );
                        })}
                    </tbody>
                </table>
            </div>
        </section>
    );
}
