// scopes.ts - the tree of name scopes of a graph, and what is to be seen of it.

import type { GraphNode } from "../types";

export interface Scope {
    path: string; // "" is the root
    label: string;
    scopes: Map<string, Scope>;
    nodes: GraphNode[];
    size: number; // nodes below
    hidden: boolean; // folded away beside the main flow (gradients, optimizer)
}

function newScope(path: string): Scope {
    return { path, label: path.split("/").at(-1) ?? path, scopes: new Map(), nodes: [], size: 0, hidden: false };
}

export function scopesOf(nodes: GraphNode[]): Scope {
    const root = newScope("");
    for (const node of nodes) {
        const parts = node.name.split("/");
        parts.pop();
        let scope = root;
        scope.size++;
        for (const part of parts) {
            const path = scope.path ? `${scope.path}/${part}` : part;
            let inner = scope.scopes.get(part);
            if (!inner) {
                inner = newScope(path);
                scope.scopes.set(part, inner);
            }
            scope = inner;
            scope.size++;
        }
        scope.nodes.push(node);
    }
    return root;
}

// What stands for a node on the picture: the outermost closed scope around it, or the node itself.
export function visible(name: string, open: ReadonlySet<string>): string {
    let at = name.indexOf("/");
    while (at >= 0) {
        const path = name.slice(0, at);
        if (!open.has(path)) return `${path}/`;
        at = name.indexOf("/", at + 1);
    }
    return name;
}

export interface Drawn {
    boxes: { id: string; scope: Scope | null; node: GraphNode | null; parent: string }[];
    arrows: { from: string; to: string; control: boolean; count: number }[];
}

// The boxes and arrows to draw, given which scopes are open.  Iterative: graphs are deep.
export function drawn(root: Scope, nodes: GraphNode[], open: ReadonlySet<string>): Drawn {
    const boxes: Drawn["boxes"] = [];
    const todo: { scope: Scope; parent: string }[] = [{ scope: root, parent: "" }];
    for (let entry = todo.pop(); entry; entry = todo.pop()) {
        for (const scope of entry.scope.scopes.values()) {
            boxes.push({ id: `${scope.path}/`, scope, node: null, parent: entry.parent });
            if (open.has(scope.path)) todo.push({ scope, parent: `${scope.path}/` });
        }
        for (const node of entry.scope.nodes) boxes.push({ id: node.name, scope: null, node, parent: entry.parent });
    }
    const arrows = new Map<string, Drawn["arrows"][number]>();
    for (const node of nodes) {
        const to = visible(node.name, open);
        for (const input of node.inputs) {
            const control = input.startsWith("^");
            const from = visible(input.replace(/^\^/, "").replace(/:\d+$/, ""), open);
            if (from === to) continue;
            const key = `${from} ${to}`;
            const old = arrows.get(key);
            if (old) {
                old.count++;
                old.control = old.control && control;
            } else arrows.set(key, { from, to, control, count: 1 });
        }
    }
    return { boxes, arrows: [...arrows.values()] };
}
