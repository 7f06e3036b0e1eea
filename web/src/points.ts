// points.ts - metric points as they arrive on the stream, merged into what was loaded.

import type { StreamEvent } from "./live";
import type { Job, Series } from "./types";

export interface Point {
    task: string;
    name: string;
    step: number;
    value: number;
    attempt: number;
}

export function pointsOf(events: StreamEvent[]): Point[] {
    const points: Point[] = [];
    for (const event of events) {
        const data = event.data as { points?: { task: string; name: string; step: number; value: number | string }[] };
        for (const point of data.points ?? [])
            points.push({ ...point, value: Number(point.value), attempt: event.attempt ?? 0 });
    }
    return points;
}

// The job with its step and last values moved on by the points.
export function withPoints(job: Job, points: Point[]): Job {
    if (points.length === 0) return job;
    const last = { ...job.last };
    let step = job.step ?? 0;
    for (const point of points) {
        last[point.name] = point.value;
        step = Math.max(step, point.step);
    }
    return { ...job, last, step };
}

// Adds points to the series in place of what they replace: a point at a step that a series has
// reached already (a new attempt went back to a checkpoint) cuts the series there.
export function merge(all: Series[], points: Point[]): Series[] {
    const next = new Map(all.map((series) => [`${series.task} ${series.name}`, series]));
    const touched = new Set<string>();
    for (const point of points) {
        const key = `${point.task} ${point.name}`;
        let series = next.get(key);
        if (!series) series = { name: point.name, task: point.task, steps: [], values: [] };
        if (!touched.has(key)) {
            series = { ...series, steps: [...series.steps], values: [...series.values] };
            touched.add(key);
            next.set(key, series);
        }
        while (series.steps.length > 0 && (series.steps.at(-1) ?? 0) >= point.step) {
            series.steps.pop();
            series.values.pop();
        }
        series.steps.push(point.step);
        series.values.push(point.value);
    }
    return [...next.values()].map(thin);
}

const POINTS_MAX = 8000;

// Keeps the memory of an open page bounded: every second point of a long series goes.
function thin(series: Series): Series {
    if (series.steps.length <= POINTS_MAX) return series;
    const keep = (_: number, index: number): boolean => index % 2 === 0 || index === series.steps.length - 1;
    return { ...series, steps: series.steps.filter(keep), values: series.values.filter(keep) };
}
