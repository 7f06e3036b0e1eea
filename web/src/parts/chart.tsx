// chart.tsx - one live curve (or a few) over steps or time, drawn by uPlot.
//
// Over steps the raw line is faint and a smoothed one lies over it when there are many points.  While the right
// edge is in view the chart follows; drag zooms, double click resets.

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";

import { metric } from "../format";
import type { Series } from "../types";

interface Line {
    label: string;
    color: string;
    faint: boolean;
    dots: boolean;
    series: Series;
    smooth: number;
}

const SMOOTH_FROM = 60;

// Exponential moving average, corrected for its start.
function smoothed(values: number[], weight: number): number[] {
    let sum = 0;
    let mass = 0;
    return values.map((value) => {
        if (!Number.isFinite(value)) return value;
        sum = sum * weight + value * (1 - weight);
        mass = mass * weight + (1 - weight);
        return sum / mass;
    });
}

function color(name: string): string {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function linesOf(all: Series[], time: boolean): Line[] {
    const lines: Line[] = [];
    all.forEach((series, index) => {
        const ink = color(`--series-${index % 8}`);
        const validation = series.name.startsWith("val_");
        const many = !time && !validation && series.values.length >= SMOOTH_FROM;
        lines.push({ label: series.name, color: ink, faint: many, dots: validation, series, smooth: 0 });
        if (many) lines.push({ label: `${series.name} smoothed`, color: ink, faint: false, dots: false, series, smooth: 0.9 });
    });
    return lines;
}

function dataOf(lines: Line[]): uPlot.AlignedData {
    const tables = lines.map(
        (line): uPlot.AlignedData => [line.series.steps, line.smooth ? smoothed(line.series.values, line.smooth) : line.series.values],
    );
    return uPlot.join(tables);
}

const DAY = 86400;

function clock(time: number, seconds: boolean): string {
    return new Date(time * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...(seconds ? { second: "2-digit" } : {}) });
}

function date(time: number): string {
    return new Date(time * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
}

function options(lines: Line[], width: number, time: boolean): uPlot.Options {
    const axis = { stroke: color("--muted"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 } };
    return {
        width,
        height: 220,
        scales: time ? { x: { time }, y: { range: (_, __, max) => [0, Math.max(max, 0.01) * 1.1] } } : { x: { time } },
        axes: [
            time
                ? { ...axis, values: (_, ticks, __, ___, apart) => ticks.map((tick) => (apart >= DAY ? date(tick) : clock(tick, apart < 60))) }
                : { ...axis, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? tick.toLocaleString("en") : "")) },
            { ...axis, size: 64, values: (_, ticks) => ticks.map((tick) => String(Number(tick.toPrecision(6)))) },
        ],
        cursor: { sync: { key: time ? "time" : "steps" }, points: { size: 7 } },
        legend: { live: true },
        series: [
            time ? { label: "time", value: (_, at: number | null) => (at === null ? "–" : `${date(at)} ${clock(at, true)}`) } : { label: "step" },
            ...lines.map((line) => ({
                label: line.label,
                stroke: line.faint ? `${line.color}59` : line.color,
                width: line.faint ? 1 : 2,
                spanGaps: true,
                points: { show: line.dots, size: 7 },
                value: (_: uPlot, value: number | null) => metric(value),
            })),
        ],
    };
}

// `time`: the steps are seconds since 1970, and what is drawn begins at 0.
export function Chart({ series, waiting, time = false }: { series: Series[]; waiting: string; time?: boolean }): preact.JSX.Element {
    const place = useRef<HTMLDivElement>(null);
    const plot = useRef<uPlot | null>(null);
    const shape = useRef("");
    const [, redraw] = useState(0);
    const drawn = series.filter((one) => one.values.length > 0);
    const lines = linesOf(drawn, time);

    useEffect(() => {
        const element = place.current;
        if (!element || lines.length === 0) return;
        const wanted = lines.map((line) => line.label + line.color).join();
        const data = dataOf(lines);
        if (!plot.current || shape.current !== wanted) {
            plot.current?.destroy();
            plot.current = new uPlot(options(lines, element.clientWidth, time), data, element);
            shape.current = wanted;
            return;
        }
        const x = plot.current.data[0];
        const right = x[x.length - 1] ?? 0;
        const max = plot.current.scales["x"]?.max ?? right;
        plot.current.setData(data, max >= right && (plot.current.scales["x"]?.min ?? 0) <= (x[0] ?? 0));
    });

    useEffect(() => {
        const resized = (): void => {
            if (plot.current && place.current) plot.current.setSize({ width: place.current.clientWidth, height: 220 });
        };
        const recolored = (): void => {
            plot.current?.destroy();
            plot.current = null;
            shape.current = "";
            redraw((times) => times + 1);
        };
        const dark = matchMedia("(prefers-color-scheme: dark)");
        addEventListener("resize", resized);
        dark.addEventListener("change", recolored);
        return () => {
            removeEventListener("resize", resized);
            dark.removeEventListener("change", recolored);
            plot.current?.destroy();
            plot.current = null;
        };
    }, []);

    return lines.length === 0 ? <div class="chart-empty">{waiting}</div> : <div class="chart" ref={place} />;
}
