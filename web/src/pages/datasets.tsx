// datasets.tsx - what jobs can train on: seen, sent from this browser, removed.

import { Fragment } from "preact";
import { useRef, useState } from "preact/hooks";

import * as api from "../api";
import { ago, bytes, count, duration } from "../format";
import { useLoad, useNow } from "../hooks";
import { ProblemNotice } from "../parts/problem";
import { Sure } from "../parts/sure";
import { useMay, useSession } from "../session";
import type { Dataset } from "../types";
import type { Picked, Progress } from "../upload";
import { droppedOf, pickedOf, upload } from "../upload";

export function DatasetsPage(): preact.JSX.Element {
    const { value, error, reload } = useLoad(api.datasets, []);
    const [adding, setAdding] = useState(false);
    const may = useMay();
    return (
        <>
            <div class="head">
                <h1>Datasets</h1>
                <span class="space" />
                {may && !adding ? (
                    <button class="button accent" onClick={() => setAdding(true)}>
                        Add a dataset
                    </button>
                ) : null}
            </div>
            {adding ? <Sending existing={value ?? []} done={reload} close={() => setAdding(false)} /> : null}
            {error ? <ProblemNotice error={error} retry={reload} /> : null}
            {!value && !error ? <p class="muted">Loading…</p> : null}
            {value && value.length === 0 && !adding ? (
                <div class="empty">
                    <p>There is no dataset yet.</p>
                    <p class="muted">
                        Send one from here, or on the server's machine: <code>trainyard dataset add digits</code>
                    </p>
                </div>
            ) : null}
            {value && value.length > 0 ? <List datasets={value} reload={reload} /> : null}
        </>
    );
}

function List({ datasets, reload }: { datasets: Dataset[]; reload: () => void }): preact.JSX.Element {
    const session = useSession();
    const [open, setOpen] = useState("");
    const [problem, setProblem] = useState<api.ApiError | null>(null);
    const now = useNow();
    const remove = (name: string): void =>
        void api.removeDataset(name).then(
            () => {
                setProblem(null);
                reload();
            },
            (error: api.ApiError) => setProblem(error),
        );
    return (
        <>
            {problem ? <ProblemNotice error={problem} /> : null}
            <div class="wide">
                <table>
                    <thead>
                        <tr>
                            <th>Dataset</th>
                            <th>State</th>
                            <th>Format</th>
                            <th class="right">To train</th>
                            <th class="right">To test</th>
                            <th class="right">Size</th>
                            <th>Added by</th>
                            <th class="right">Added</th>
                            <th />
                        </tr>
                    </thead>
                    <tbody>
                        {datasets.map((one) => (
                            <Fragment key={one.name}>
                                <tr>
                                    <td>
                                        {one.state === "ready" ? (
                                            <button class="plain" aria-expanded={open === one.name} onClick={() => setOpen(open === one.name ? "" : one.name)}>
                                                {one.name}
                                            </button>
                                        ) : (
                                            one.name
                                        )}
                                    </td>
                                    <td title={one.error}>
                                        {one.state === "uploading" ? (
                                            <span title="Its files have not all come: choose them again under the same name to go on">being sent</span>
                                        ) : (
                                            one.state
                                        )}
                                    </td>
                                    <td>{one.format ?? "–"}</td>
                                    <td class="right">{count(one.train)}</td>
                                    <td class="right">{count(one.test)}</td>
                                    <td class="right" title={`${one.files_count ?? 0} files`}>
                                        {bytes(one.size)}
                                    </td>
                                    <td>{one.added_by ?? "–"}</td>
                                    <td class="right" title={one.added_at ?? undefined}>
                                        {ago(one.added_at, now)}
                                    </td>
                                    <td class="right">
                                        {session.role === "admin" || one.added_by === session.user ? (
                                            <Sure label="Remove" title={`Remove the dataset ${one.name}`} act={() => remove(one.name)} />
                                        ) : null}
                                    </td>
                                </tr>
                                {open === one.name ? (
                                    <tr>
                                        <td colSpan={9}>
                                            <Columns dataset={one} />
                                        </td>
                                    </tr>
                                ) : null}
                            </Fragment>
                        ))}
                    </tbody>
                </table>
            </div>
        </>
    );
}

function Columns({ dataset }: { dataset: Dataset }): preact.JSX.Element {
    if (!dataset.columns?.length) return <p class="muted">A job's spec says how its files are read.</p>;
    return (
        <table>
            <thead>
                <tr>
                    <th>Column</th>
                    <th>Used as</th>
                    <th>Type</th>
                    <th>Shape</th>
                    <th class="right">Classes</th>
                </tr>
            </thead>
            <tbody>
                {dataset.columns.slice(0, 200).map((column) => (
                    <tr key={column.name}>
                        <td>{column.name}</td>
                        <td>{column.role}</td>
                        <td class="mono">{column.dtype}</td>
                        <td class="mono">[{column.shape.join(", ")}]</td>
                        <td class="right">{column.classes || "–"}</td>
                    </tr>
                ))}
            </tbody>
        </table>
    );
}

// The form, and what comes of it.
function Sending({ existing, done, close }: { existing: Dataset[]; done: () => void; close: () => void }): preact.JSX.Element {
    const [name, setName] = useState("");
    const [picked, setPicked] = useState<Picked[]>([]);
    const [over, setOver] = useState(false);
    const [progress, setProgress] = useState<Progress | null>(null);
    const [problem, setProblem] = useState<api.ApiError | null>(null);
    const stopping = useRef(false);
    const began = useRef(0);
    const size = picked.reduce((sum, { file }) => sum + file.size, 0);
    const begun = existing.find((one) => one.name === name && one.state === "uploading");
    const taken = existing.some((one) => one.name === name && one.state !== "uploading");

    const send = (event: Event): void => {
        event.preventDefault();
        stopping.current = false;
        began.current = Date.now();
        setProblem(null);
        setProgress({ bytes: 0, total: size, files: 0, path: "" });
        upload(name, picked, setProgress, () => stopping.current).then(
            () => {
                setProgress(null);
                done();
                if (!stopping.current) close();
            },
            (error: api.ApiError) => {
                setProgress(null);
                setProblem(error);
                done();
            },
        );
    };
    const seconds = (Date.now() - began.current) / 1000;
    const left = progress && progress.bytes > 0 && progress.bytes < progress.total ? (seconds * (progress.total - progress.bytes)) / progress.bytes : null;
    return (
        <form class="panel sending" onSubmit={send}>
            <header>
                <h2>Add a dataset</h2>
                <span class="space" />
                {progress ? null : (
                    <button class="button" type="button" onClick={close}>
                        Close
                    </button>
                )}
            </header>
            <label class="field">
                <span>Name, by which jobs ask for it</span>
                <input
                    type="text"
                    required
                    pattern="[A-Za-z0-9_\-][A-Za-z0-9._\-]*"
                    maxLength={128}
                    title="letters, digits, '.', '_' and '-', the first no '.'"
                    disabled={progress !== null}
                    value={name}
                    class={taken ? "invalid" : ""}
                    onInput={(event) => setName(event.currentTarget.value)}
                />
                {taken ? <small class="error-text">There is a dataset of this name: remove it first, or take another.</small> : null}
                {begun ? <small class="muted">{bytes(begun.size)} of it have come already: what is there is not sent again.</small> : null}
            </label>
            <div
                class={`drop ${over ? "over" : ""}`}
                onDragOver={(event) => {
                    event.preventDefault();
                    setOver(true);
                }}
                onDragLeave={() => setOver(false)}
                onDrop={(event) => {
                    event.preventDefault();
                    setOver(false);
                    if (event.dataTransfer) void droppedOf(event.dataTransfer).then(setPicked);
                }}
            >
                {picked.length > 0 ? (
                    <p>
                        {count(picked.length)} {picked.length === 1 ? "file" : "files"}, {bytes(size)}
                    </p>
                ) : (
                    <p>Drop a folder or files here: CSV, NPY, TFRecord, pictures in a folder for each class, texts, IDX, CIFAR-10.</p>
                )}
                <p>
                    <label class="button">
                        Choose a folder
                        <input
                            type="file"
                            hidden
                            ref={(input) => {
                                if (input) input.webkitdirectory = true;
                            }}
                            onChange={(event) => setPicked(pickedOf(event.currentTarget.files))}
                        />
                    </label>{" "}
                    <label class="button">
                        Choose files
                        <input type="file" hidden multiple onChange={(event) => setPicked(pickedOf(event.currentTarget.files))} />
                    </label>
                </p>
            </div>
            {problem ? <ProblemNotice error={problem} /> : null}
            {progress ? (
                <div role="status">
                    <progress max={progress.total || 1} value={progress.bytes} />
                    <p class="muted">
                        {progress.bytes < progress.total || progress.path ? (
                            <>
                                {bytes(progress.bytes)} of {bytes(progress.total)}
                                {left === null ? "" : `, ${duration(left)} left`} <span class="clip">{progress.path}</span>
                            </>
                        ) : (
                            "All has come. The server looks what is in it …"
                        )}
                    </p>
                    <button class="button" type="button" onClick={() => (stopping.current = true)}>
                        Stop
                    </button>
                </div>
            ) : (
                <button class="button accent" type="submit" disabled={!name || picked.length === 0 || taken}>
                    {begun ? "Go on" : "Send"}
                </button>
            )}
        </form>
    );
}
