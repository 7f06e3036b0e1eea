// new-job.tsx - a short form on the left, the same as JSON on the right, what it means below.

import { useEffect, useRef, useState } from "preact/hooks";

import * as api from "../api";
import { count } from "../format";
import { go, useLoad } from "../hooks";
import { ProblemNotice } from "../parts/problem";
import type { Dataset } from "../types";

type Json = Record<string, unknown>;

const DRAFT = "trainyard.draft";

// `"worker": 3` is short for `"worker": {"replicas": 3}`.
function at(spec: Json, path: string[]): unknown {
    return path.reduce<unknown>((value, key) => {
        if (typeof value === "number" && key === "replicas") return value;
        return value && typeof value === "object" ? (value as Json)[key] : undefined;
    }, spec);
}

// The spec with another value there; without one, and without objects that it leaves empty.
function put(spec: Json, path: string[], value: unknown): Json {
    const [key, ...rest] = path;
    if (key === undefined) return spec;
    const copy = { ...spec };
    const inner = copy[key];
    let next = value;
    if (rest.length > 0) {
        const whole = typeof inner === "number" ? { replicas: inner } : inner && typeof inner === "object" ? (inner as Json) : {};
        next = put(whole, rest, value);
        if (Object.keys(next as Json).length === 0 && key !== "cluster") next = undefined; /* that one says what kind of job it is */
    }
    if (next === undefined || next === "") delete copy[key];
    else copy[key] = next;
    return copy;
}

// What stands where a simple value could: a schedule by its name, say.
function summary(value: Json): string {
    return String(value["name"] ?? Object.keys(value)[0] ?? "an object");
}

interface FieldProps {
    label: string;
    path: string[];
    spec: Json;
    change: (spec: Json) => void;
    kind?: "text" | "number";
    placeholder?: string;
    list?: string; // id of a <datalist> to choose from
    wrong: string | undefined;
}

function Field({ label, path, spec, change, kind = "text", placeholder, list, wrong }: FieldProps): preact.JSX.Element {
    const value = at(spec, path);
    const composed = value !== null && typeof value === "object"; /* a schedule, say: seen on the right */
    return (
        <label class="field">
            <span>{label}</span>
            <input
                type="text"
                inputMode={kind === "number" ? "decimal" : "text"}
                class={wrong ? "invalid" : ""}
                list={list}
                value={value === undefined || composed ? "" : String(value)}
                placeholder={composed ? `${summary(value as Json)}, as the JSON says` : placeholder}
                onInput={(event) => {
                    const text = event.currentTarget.value;
                    const number = Number(text);
                    change(put(spec, path, kind === "number" && text !== "" && !Number.isNaN(number) ? number : text));
                }}
            />
            {wrong ? <small class="error-text">{wrong}</small> : null}
        </label>
    );
}

interface ChoiceProps {
    label: string;
    path: string[];
    choices: string[];
    spec: Json;
    change: (spec: Json) => void;
    wrong: string | undefined;
}

// One of a few words, the first of which need not be said.
function Choice({ label, path, choices, spec, change, wrong }: ChoiceProps): preact.JSX.Element {
    const value = String(at(spec, path) ?? choices[0]);
    return (
        <label class="field">
            <span>{label}</span>
            <select value={value} onChange={(event) => change(put(spec, path, event.currentTarget.value === choices[0] ? undefined : event.currentTarget.value))}>
                {[...new Set([...choices, value])].map((choice) => (
                    <option key={choice} value={choice}>
                        {choice}
                    </option>
                ))}
            </select>
            {wrong ? <small class="error-text">{wrong}</small> : null}
        </label>
    );
}

// Not a program, nor tasks for others.
function training(spec: Json): boolean {
    return spec["command"] === undefined && spec["cluster"] === undefined;
}

interface ModelFieldsProps {
    spec: Json;
    change: (spec: Json) => void;
    wrong: (pointer: string) => string | undefined;
    datasets: Dataset[];
}

function ModelFields({ spec, change, wrong, datasets }: ModelFieldsProps): preact.JSX.Element {
    return (
        <>
            <Field
                label="Dataset"
                path={["data", "dataset"]}
                list="datasets"
                spec={spec}
                change={change}
                wrong={wrong("/data/dataset")}
            />
            <datalist id="datasets">
                {datasets
                    .filter((one) => one.state === "ready")
                    .map((one) => (
                        <option key={one.name} value={one.name} />
                    ))}
            </datalist>
            <Field label="Batch size" path={["data", "batch_size"]} kind="number" spec={spec} change={change} wrong={wrong("/data/batch_size")} />
            <Field
                label="Steps"
                path={["train", "steps"]}
                kind="number"
                placeholder={at(spec, ["train", "epochs"]) === undefined ? "" : `${String(at(spec, ["train", "epochs"]))} epochs`}
                spec={spec}
                change={(next) => change(put(next, ["train", "epochs"], undefined))}
                wrong={wrong("/train/steps")}
            />
            <Field
                label="Learning rate"
                path={["train", "optimizer", "learning_rate"]}
                kind="number"
                placeholder="the optimizer's default"
                spec={spec}
                change={change}
                wrong={wrong("/train/optimizer/learning_rate")}
            />
            <Choice label="Precision" path={["train", "precision"]} choices={["float32", "bfloat16"]} spec={spec} change={change} wrong={wrong("/train/precision")} />
        </>
    );
}

export function NewJobPage(): preact.JSX.Element {
    const examples = useLoad(api.examples, []);
    const datasets = useLoad(api.datasets, []);
    const [text, setText] = useState(sessionStorage.getItem(DRAFT) ?? "");
    const [plan, setPlan] = useState<Awaited<ReturnType<typeof api.plan>> | null>(null);
    const [problem, setProblem] = useState<api.ApiError | null>(null);
    const [busy, setBusy] = useState(false);
    const [example, setExample] = useState("");
    const round = useRef(0);

    // The one whose data needs no download; what was chosen or typed meanwhile stays.
    useEffect(() => {
        const all = examples.value;
        const first = all?.find((one) => one.name === "digits-cnn") ?? all?.[0];
        if (!first || text) return;
        setExample((now) => now || first.name);
        setText((now) => now || JSON.stringify(first.spec, null, 2));
    }, [examples.value]);

    // The plan follows what is typed, a moment after the last key.
    useEffect(() => {
        if (!text) return;
        sessionStorage.setItem(DRAFT, text);
        const mine = ++round.current;
        const timer = setTimeout(() => {
            api.plan(text).then(
                (planned) => {
                    if (mine !== round.current) return;
                    setPlan(planned);
                    setProblem(null);
                },
                (error: api.ApiError) => {
                    if (mine !== round.current) return;
                    setPlan(null);
                    setProblem(error);
                },
            );
        }, 250);
        return () => clearTimeout(timer);
    }, [text]);

    let spec: Json | null = null;
    try {
        const parsed: unknown = JSON.parse(text);
        if (parsed && typeof parsed === "object" && !Array.isArray(parsed)) spec = parsed as Json;
    } catch {
        spec = null;
    }
    const change = (next: Json): void => setText(JSON.stringify(next, null, 2));
    const wrong = (pointer: string): string | undefined => problem?.problem.errors.find((field) => field.pointer === pointer)?.detail;

    const submit = (): void => {
        setBusy(true);
        api.submit(text).then(
            (job) => {
                sessionStorage.removeItem(DRAFT);
                go(`/jobs/${job.number}`);
            },
            (error: api.ApiError) => {
                setProblem(error);
                setBusy(false);
            },
        );
    };

    return (
        <>
            <div class="head">
                <h1>New job</h1>
                <span class="space" />
                <button class="button accent" disabled={busy || !spec} onClick={submit}>
                    Submit
                </button>
            </div>
            {examples.error ? <ProblemNotice error={examples.error} retry={examples.reload} /> : null}
            <div class="editor">
                <section>
                    <label class="field">
                        <span>Start from an example</span>
                        <select
                            value={example}
                            onChange={(event) => {
                                const chosen = examples.value?.find((one) => one.name === event.currentTarget.value);
                                if (!chosen) return;
                                setExample(chosen.name);
                                change(chosen.spec);
                            }}
                        >
                            {example ? null : <option value="">as it was left</option>}
                            {(examples.value ?? []).map((example) => (
                                <option key={example.name} value={example.name}>
                                    {example.name}
                                </option>
                            ))}
                        </select>
                    </label>
                    {spec ? (
                        <>
                            <Field label="Name" path={["name"]} spec={spec} change={change} wrong={wrong("/name")} />
                            {spec["cluster"] !== undefined ? (
                                <Field
                                    label="Ends when unused for so many seconds"
                                    path={["cluster", "idle_seconds"]}
                                    kind="number"
                                    placeholder="3600"
                                    spec={spec}
                                    change={change}
                                    wrong={wrong("/cluster/idle_seconds")}
                                />
                            ) : training(spec) ? (
                                <ModelFields spec={spec} change={change} wrong={wrong} datasets={datasets.value ?? []} />
                            ) : null}
                            <Field
                                label="Workers"
                                path={["tasks", "worker", "replicas"]}
                                kind="number"
                                placeholder="1"
                                spec={spec}
                                change={change}
                                wrong={wrong("/tasks/worker/replicas") ?? wrong("/tasks/worker")}
                            />
                            <Field
                                label="Parameter servers"
                                path={["tasks", "ps", "replicas"]}
                                kind="number"
                                placeholder="none"
                                spec={spec}
                                change={change}
                                wrong={wrong("/tasks/ps/replicas") ?? wrong("/tasks/ps")}
                            />
                            {spec["cluster"] !== undefined ? null : (
                                <Field
                                    label="GPUs for each worker"
                                    path={["tasks", "worker", "gpus"]}
                                    kind="number"
                                    placeholder="none"
                                    spec={spec}
                                    change={change}
                                    wrong={wrong("/tasks/worker/gpus")}
                                />
                            )}
                            {training(spec) ? <Field label="Seed" path={["seed"]} kind="number" spec={spec} change={change} wrong={wrong("/seed")} /> : null}
                        </>
                    ) : (
                        <p class="error-text">The text on the right is not JSON yet.</p>
                    )}
                </section>
                <section>
                    <label class="field">
                        <span>The same as JSON, the body of POST /api/v1/jobs</span>
                        <textarea
                            rows={24}
                            spellcheck={false}
                            value={text}
                            onInput={(event) => setText(event.currentTarget.value)}
                            aria-label="Job spec"
                        />
                    </label>
                    {problem ? <ProblemNotice error={problem} /> : null}
                    {plan ? <Plan plan={plan} /> : null}
                </section>
            </div>
        </>
    );
}

function Plan({ plan }: { plan: Awaited<ReturnType<typeof api.plan>> }): preact.JSX.Element {
    return (
        <div class="notice">
            <p>{plan.text}</p>
            {plan.layers && plan.layers.length > 0 ? (
                <table>
                    <thead>
                        <tr>
                            <th>Layer</th>
                            <th>Output</th>
                            <th class="right">Parameters</th>
                        </tr>
                    </thead>
                    <tbody>
                        {plan.layers.map((layer) => (
                            <tr key={layer.name}>
                                <td>
                                    {layer.name} <span class="muted">{layer.layer}</span>
                                </td>
                                <td class="mono">{layer.output_shape}</td>
                                <td class="right">{count(layer.parameters)}</td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            ) : null}
        </div>
    );
}
