// layout.ts - places for boxes and arrows.
//
// Each open scope is laid out by itself (dagre), the innermost first, and stands in its parent as
// one box of that size.  So opening a scope moves its neighbours aside and nothing else.

import { Graph, layout as dagre } from "@dagrejs/dagre";

import type { Arrow, Inside } from "./scopes";

export interface Box {
    id: string;
    label: string;
    x: number;
    y: number;
    width: number;
    height: number;
    open: boolean;
    hub: boolean;
}

export interface Placed {
    width: number;
    height: number;
    boxes: Box[];
    arrows: (Arrow & { points: { x: number; y: number }[] })[];
}

const BOX_HEIGHT = 26;
const CHAR_WIDTH = 6.7;
const HEADER = 20; // room for the name of an open scope

function placeOne(inside: Inside, done: ReadonlyMap<string, Placed>): Placed {
    const graph = new Graph();
    graph.setGraph({ rankdir: "TB", nodesep: 16, ranksep: 28, marginx: 12, marginy: 12 });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const box of inside.boxes) {
        const open = box.scope ? done.get(box.scope.path) : undefined;
        const own = Math.max(48, box.label.length * CHAR_WIDTH + 18);
        graph.setNode(box.id, { width: open ? Math.max(open.width, own) : own, height: open ? open.height + HEADER : BOX_HEIGHT });
    }
    for (const arrow of inside.arrows)
        if (graph.hasNode(arrow.from) && graph.hasNode(arrow.to)) graph.setEdge(arrow.from, arrow.to, {});
    dagre(graph);
    const size = graph.graph() as { width?: number; height?: number };
    return {
        width: size.width ?? 0,
        height: size.height ?? 0,
        boxes: inside.boxes.map((box) => {
            const at = graph.node(box.id) as { x: number; y: number; width: number; height: number };
            const open = box.scope !== null && done.has(box.scope.path);
            return { id: box.id, label: box.label, x: at.x - at.width / 2, y: at.y - at.height / 2, width: at.width, height: at.height, open, hub: box.hub };
        }),
        arrows: inside.arrows.flatMap((arrow) => {
            const edge = graph.edge(arrow.from, arrow.to) as { points: { x: number; y: number }[] } | undefined;
            return edge ? [{ ...arrow, points: edge.points }] : [];
        }),
    };
}

// Everything that is visible, outer boxes before inner ones.
export function place(insides: ReadonlyMap<string, Inside>): Placed {
    const done = new Map<string, Placed>();
    for (const [path, inside] of [...insides].reverse()) done.set(path, placeOne(inside, done));
    const root = done.get("");
    if (!root) return { width: 0, height: 0, boxes: [], arrows: [] };
    const whole: Placed = { width: root.width, height: root.height, boxes: [], arrows: [] };
    const todo = [{ placed: root, x: 0, y: 0 }];
    for (let entry = todo.shift(); entry; entry = todo.shift()) {
        const { x, y } = entry;
        for (const box of entry.placed.boxes) {
            const moved = { ...box, x: box.x + x, y: box.y + y };
            whole.boxes.push(moved);
            const inner = box.open ? done.get(box.id.slice(0, -1)) : undefined;
            if (inner) todo.push({ placed: inner, x: moved.x + (box.width - inner.width) / 2, y: moved.y + HEADER });
        }
        for (const arrow of entry.placed.arrows)
            whole.arrows.push({ ...arrow, points: arrow.points.map((point) => ({ x: point.x + x, y: point.y + y })) });
    }
    return whole;
}
