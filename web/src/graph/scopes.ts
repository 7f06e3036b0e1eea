// scopes.ts - the tree of name scopes of a graph, and the picture inside each open one.

import type { GraphNode } from "../types";

export interface Scope {
    path: string; // "" is the root
    label: string;
    scopes: Map<string, Scope>; // by the id of their box: "conv2d/"
    nodes: GraphNode[];
    size: number; // nodes below
}

export interface Arrow {
    from: string;
    to: string;
    control: boolean;
    count: number;
}

// What is inside an open scope: boxes by id ("dense/" a scope, "dense/MatMul" a node), and the
// arrows between them.
export interface Inside {
    scope: Scope;
    boxes: { id: string; label: string; scope: Scope | null; node: GraphNode | null; hub: boolean }[];
    arrows: Arrow[];
}

// A box that so many others are linked to would cover the picture with lines (the gradients, the
// groups "init" and "train", the learning rate): it is drawn aside, without them.
const HUB_LINKS = 7;

function newScope(path: string): Scope {
    return { path, label: path.split("/").at(-1) ?? path, scopes: new Map(), nodes: [], size: 0 };
}

export function scopesOf(nodes: GraphNode[]): Scope {
    const root = newScope("");
    for (const node of nodes) {
        let scope = root;
        scope.size++;
        for (let at = node.name.indexOf("/"); at >= 0; at = node.name.indexOf("/", at + 1)) {
            const path = node.name.slice(0, at);
            let inner = scope.scopes.get(`${path}/`);
            if (!inner) {
                inner = newScope(path);
                scope.scopes.set(`${path}/`, inner);
            }
            scope = inner;
            scope.size++;
        }
        scope.nodes.push(node);
    }
    return root;
}

// The box that stands for a node inside the scope of that path.
function boxOf(path: string, name: string): string {
    const at = name.indexOf("/", path ? path.length + 1 : 0);
    return at < 0 ? name : name.slice(0, at + 1);
}

// Where the arrow between two nodes is drawn: in the innermost open scope that holds both.
function meeting(from: string, to: string, open: ReadonlySet<string>): { path: string; from: string; to: string } | null {
    let path = "";
    for (;;) {
        const a = boxOf(path, from);
        const b = boxOf(path, to);
        if (a !== b) return { path, from: a, to: b };
        if (!a.endsWith("/") || !open.has(a.slice(0, -1))) return null;
        path = a.slice(0, -1);
    }
}

// Every open scope, outermost first.  Iterative: scopes may be deep.
export function insides(root: Scope, nodes: GraphNode[], open: ReadonlySet<string>): Map<string, Inside> {
    const all = new Map<string, Inside>();
    const todo = [root];
    for (let scope = todo.shift(); scope; scope = todo.shift()) {
        const boxes: Inside["boxes"] = [];
        for (const [id, inner] of scope.scopes) {
            boxes.push({ id, label: `${inner.label} (${inner.size})`, scope: inner, node: null, hub: false });
            if (open.has(inner.path)) todo.push(inner);
        }
        for (const node of scope.nodes) boxes.push({ id: node.name, label: node.name.split("/").at(-1) ?? "", scope: null, node, hub: false });
        all.set(scope.path, { scope, boxes, arrows: [] });
    }
    const arrows = new Map<string, Arrow>();
    for (const node of nodes) {
        for (const input of node.inputs) {
            const control = input.startsWith("^");
            const met = meeting(input.replace(/^\^/, "").replace(/:\d+$/, ""), node.name, open);
            if (!met) continue;
            const key = `${met.from} ${met.to}`;
            const old = arrows.get(key);
            if (old) {
                old.count++;
                old.control = old.control && control;
                continue;
            }
            const arrow = { from: met.from, to: met.to, control, count: 1 };
            arrows.set(key, arrow);
            all.get(met.path)?.arrows.push(arrow);
        }
    }
    for (const inside of all.values()) setHubs(inside);
    return all;
}

function setHubs(inside: Inside): void {
    const links = new Map<string, number>();
    for (const arrow of inside.arrows)
        for (const id of [arrow.from, arrow.to]) links.set(id, (links.get(id) ?? 0) + 1);
    const hubs = new Set([...links].filter(([, count]) => count > HUB_LINKS).map(([id]) => id));
    for (const box of inside.boxes) box.hub = hubs.has(box.id);
    inside.arrows = inside.arrows.filter((arrow) => !hubs.has(arrow.from) && !hubs.has(arrow.to));
}
