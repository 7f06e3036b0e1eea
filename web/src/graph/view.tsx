// view.tsx - the graph by scopes: a click opens a scope in place, or shows what a node is.

import { useMemo, useState } from "preact/hooks";

import { WhyThere } from "../parts/why-there";
import type { GraphNode, Placed } from "../types";
import { place } from "./layout";
import { insides, scopesOf } from "./scopes";

const BOXES_MAX = 1500;
const SCALE_MIN = 0.5; // texts smaller than that are not read
const ZOOM = 1.25;

// As wide as its frame, if it can be read so; or `zoom` times its size.
function sizeOf(placed: { width: number; height: number }, zoom: number | null): Record<string, string> {
    const width = `${placed.width * (zoom ?? 1)}px`;
    return zoom ? { width, height: "auto" } : { width, height: "auto", maxWidth: `max(100%, ${placed.width * SCALE_MIN}px)` };
}

// Scopes open at first: none, or the only one.
function firstOpen(nodes: GraphNode[]): Set<string> {
    const tops = new Set(nodes.map((node) => node.name.split("/")[0] ?? ""));
    return tops.size === 1 ? new Set(tops) : new Set();
}

export function GraphView({ nodes, placement }: { nodes: GraphNode[]; placement: ReadonlyMap<string, Placed> }): preact.JSX.Element {
    const [open, setOpen] = useState<ReadonlySet<string>>(() => firstOpen(nodes));
    const [chosen, setChosen] = useState<string>("");
    const [find, setFind] = useState("");
    const [zoom, setZoom] = useState<number | null>(null); // null: fits
    const root = useMemo(() => scopesOf(nodes), [nodes]);
    const shown = useMemo(() => insides(root, nodes, open), [root, nodes, open]);
    const boxes = useMemo(() => new Map([...shown.values()].flatMap((inside) => inside.boxes.map((box) => [box.id, box] as const))), [shown]);
    const tooMany = boxes.size > BOXES_MAX;
    const placed = useMemo(() => (tooMany ? null : place(shown)), [shown, tooMany]);

    const toggle = (path: string): void => {
        const next = new Set(open);
        if (!next.delete(path)) next.add(path);
        else for (const inner of [...next]) if (inner.startsWith(`${path}/`)) next.delete(inner);
        setOpen(next);
    };
    const reveal = (name: string): void => {
        const next = new Set(open);
        for (let at = name.indexOf("/"); at >= 0; at = name.indexOf("/", at + 1)) next.add(name.slice(0, at));
        setOpen(next);
        setChosen(name);
    };
    const matches = find.length < 2 ? [] : nodes.filter((node) => node.name.toLowerCase().includes(find.toLowerCase())).slice(0, 12);

    return (
        <div class="split">
            <div>
                {placed ? (
                    <div class="graph">
                        <svg viewBox={`0 0 ${placed.width} ${placed.height}`} style={sizeOf(placed, zoom)} role="img" aria-label={`Graph of ${nodes.length} nodes`}>
                            <defs>
                                <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="8" markerHeight="8" orient="auto">
                                    <path d="M0 0L8 4L0 8z" />
                                </marker>
                            </defs>
                            {placed.boxes
                                .filter((box) => box.open)
                                .map((box) => (
                                    <g class="scope open" key={box.id} onClick={() => toggle(box.id.slice(0, -1))}>
                                        <title>{`${box.id}: click to close`}</title>
                                        <rect x={box.x} y={box.y} width={box.width} height={box.height} rx="6" />
                                        <text x={box.x + 8} y={box.y + 13}>
                                            {box.id.slice(0, -1)}
                                        </text>
                                    </g>
                                ))}
                            {placed.arrows.map((arrow) => (
                                <path
                                    key={`${arrow.from} ${arrow.to}`}
                                    class={arrow.control ? "control" : ""}
                                    stroke-width={Math.min(4, 1 + Math.log2(arrow.count))}
                                    marker-end="url(#tip)"
                                    d={arrow.points.map((point, index) => `${index ? "L" : "M"}${point.x.toFixed(1)} ${point.y.toFixed(1)}`).join("")}
                                />
                            ))}
                            {placed.boxes
                                .filter((box) => !box.open)
                                .map((box) => {
                                    const what = boxes.get(box.id);
                                    const isScope = box.id.endsWith("/");
                                    return (
                                        <g
                                            key={box.id}
                                            class={`${isScope ? "scope" : "op"} ${chosen === box.id ? "chosen" : ""} ${box.hub ? "hub" : ""}`}
                                            onClick={() => (isScope ? toggle(box.id.slice(0, -1)) : setChosen(box.id))}
                                        >
                                            <title>{isScope ? `${box.id} ${what?.scope?.size ?? 0} nodes: click to open` : `${box.id}: ${what?.node?.op ?? ""}`}</title>
                                            <rect x={box.x} y={box.y} width={box.width} height={box.height} rx={isScope ? 6 : 13} />
                                            <text x={box.x + box.width / 2} y={box.y + box.height / 2 + 4} text-anchor="middle">
                                                {box.label}
                                            </text>
                                        </g>
                                    );
                                })}
                        </svg>
                    </div>
                ) : (
                    <div class="notice wait">
                        <p>
                            {boxes.size} boxes would be too many to read at once. Close a scope, or find a node by name.
                        </p>
                        <button class="button" onClick={() => setOpen(new Set())}>
                            Close all
                        </button>
                    </div>
                )}
            </div>
            <aside>
                <p class="row" role="group" aria-label="Size of the graph">
                    <button class="button" onClick={() => setZoom((zoom ?? 1) / ZOOM)} title="Smaller">
                        −
                    </button>
                    <button class="button" onClick={() => setZoom(null)} aria-pressed={zoom === null}>
                        Fit
                    </button>
                    <button class="button" onClick={() => setZoom((zoom ?? 1) * ZOOM)} title="Larger">
                        +
                    </button>
                </p>
                <label class="field">
                    <span>Find a node of {nodes.length}</span>
                    <input value={find} onInput={(event) => setFind(event.currentTarget.value)} placeholder="MatMul" />
                </label>
                {matches.map((node) => (
                    <div key={node.name}>
                        <button class="plain mono" onClick={() => reveal(node.name)}>
                            {node.name}
                        </button>
                    </div>
                ))}
                <Card node={nodes.find((node) => node.name === chosen) ?? null} placed={placement.get(chosen) ?? null} reveal={reveal} />
            </aside>
        </div>
    );
}

function Card({ node, placed, reveal }: { node: GraphNode | null; placed: Placed | null; reveal: (name: string) => void }): preact.JSX.Element {
    if (!node) return <p class="muted">Click a box: a scope opens in place, a node shows what it is. A dashed box has so many links that they are left out.</p>;
    return (
        <section class="panel">
            <header>
                <h2 class="mono">{node.name}</h2>
            </header>
            <dl class="facts">
                <dt>op</dt>
                <dd class="mono">{node.op}</dd>
                <dt>device</dt>
                <dd class="mono">{placed?.device || node.device || "–"}</dd>
                {placed ? (
                    <>
                        <dt>requested</dt>
                        <dd class="mono">{placed.requested || "–"}</dd>
                        <dt>why there</dt>
                        <dd>
                            <WhyThere placed={placed} />
                        </dd>
                    </>
                ) : null}
                {(node.shapes ?? []).map((shape, index) => (
                    <>
                        <dt>output {index}</dt>
                        <dd class="mono">{shape}</dd>
                    </>
                ))}
                {Object.entries(node.attrs ?? {}).map(([name, value]) => (
                    <>
                        <dt>{name}</dt>
                        <dd class="mono">{value}</dd>
                    </>
                ))}
                {node.inputs.map((input, index) => (
                    <>
                        <dt>{input.startsWith("^") ? "after" : `input ${index}`}</dt>
                        <dd>
                            <a
                                href={location.pathname}
                                onClick={(event) => {
                                    event.preventDefault();
                                    event.stopPropagation();
                                    reveal(input.replace(/^\^/, "").replace(/:\d+$/, ""));
                                }}
                            >
                                {input}
                            </a>
                        </dd>
                    </>
                ))}
            </dl>
        </section>
    );
}
