// layout.ts - places for boxes and arrows: dagre over what is visible.

import { Graph, layout as dagre } from "@dagrejs/dagre";

import type { Drawn } from "./scopes";

export interface Placed {
    width: number;
    height: number;
    boxes: { id: string; x: number; y: number; width: number; height: number; open: boolean }[];
    arrows: { from: string; to: string; points: { x: number; y: number }[]; control: boolean; count: number }[];
}

const BOX_HEIGHT = 26;
const CHAR_WIDTH = 6.7;

export function labelOf(box: Drawn["boxes"][number]): string {
    if (box.scope) return `${box.scope.label} (${box.scope.size})`;
    return box.node?.name.split("/").at(-1) ?? box.id;
}

export function place(drawn: Drawn, open: ReadonlySet<string>): Placed {
    const graph = new Graph({ compound: true });
    graph.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 34, marginx: 16, marginy: 16 });
    graph.setDefaultEdgeLabel(() => ({}));
    const isOpen = (id: string): boolean => id.endsWith("/") && open.has(id.slice(0, -1));
    for (const box of drawn.boxes) {
        const label = labelOf(box);
        graph.setNode(box.id, { width: Math.max(48, label.length * CHAR_WIDTH + 18), height: BOX_HEIGHT });
    }
    for (const box of drawn.boxes) if (box.parent) graph.setParent(box.id, box.parent);
    for (const arrow of drawn.arrows) {
        if (isOpen(arrow.from) || isOpen(arrow.to)) continue;
        if (graph.hasNode(arrow.from) && graph.hasNode(arrow.to)) graph.setEdge(arrow.from, arrow.to, {});
    }
    dagre(graph);
    const size = graph.graph() as { width?: number; height?: number };
    return {
        width: size.width ?? 0,
        height: size.height ?? 0,
        boxes: drawn.boxes.map((box) => {
            const at = graph.node(box.id) as { x: number; y: number; width: number; height: number };
            return { id: box.id, x: at.x - at.width / 2, y: at.y - at.height / 2, width: at.width, height: at.height, open: isOpen(box.id) };
        }),
        arrows: drawn.arrows.flatMap((arrow) => {
            const edge = graph.edge(arrow.from, arrow.to) as { points: { x: number; y: number }[] } | undefined;
            return edge ? [{ ...arrow, points: edge.points }] : [];
        }),
    };
}
