// hardware.tsx - what the tasks of a job use of their machines, beside what the job reports.

import { useEffect } from "preact/hooks";

import * as api from "../api";
import { useLoad } from "../hooks";
import { subscribe } from "../live";
import { merge, pointsOf } from "../points";
import type { Job, Series } from "../types";
import { isTerminal } from "../types";
import { Chart } from "./chart";

const GIB = 2 ** 30;
const MIB = 2 ** 20;
const LINES_MAX = 8; // of a chart: as many as there are colours
const RECENT = 12; // points that say who is high

// A chart: its title, and the series on it by the words of its legend.
const CHARTS: { title: string; unit: number; lines: Record<string, string> }[] = [
    { title: "CPU, cores", unit: 1, lines: { "hw/cpu": "cores" } },
    { title: "Memory, GiB", unit: GIB, lines: { "hw/memory": "resident" } },
    { title: "GPUs busy", unit: 1, lines: { "hw/gpu": "GPUs" } },
    { title: "GPU memory, GiB", unit: GIB, lines: { "hw/gpu_memory": "in use" } },
    { title: "Disk, MiB/s", unit: MIB, lines: { "hw/disk_read": "read", "hw/disk_write": "written" } },
    { title: "Network, MiB/s", unit: MIB, lines: { "hw/network_receive": "received", "hw/network_send": "sent" } },
];

/** Those that are highest of late, in their order, when there are more than can be told apart. */
function highest(series: Series[]): Series[] {
    if (series.length <= LINES_MAX) return series;
    const height = (one: Series): number => one.values.slice(-RECENT).reduce((sum, value) => sum + (value ?? 0), 0);
    const kept = new Set([...series].sort((a, b) => height(b) - height(a)).slice(0, LINES_MAX));
    return series.filter((one) => kept.has(one));
}

function useHardware(job: Job): Series[] {
    const series = useLoad(() => api.hardware(job.id), [job.id]);
    const done = isTerminal(job.state);
    useEffect(
        () =>
            done
                ? undefined
                : subscribe("job.hw", job.id, (events) => series.set((value) => merge(value ?? [], pointsOf(events))), series.reload),
        [job.id, done],
    );
    return series.value ?? [];
}

export function Hardware({ job }: { job: Job }): preact.JSX.Element | null {
    const all = useHardware(job);
    const several = new Set(all.map((one) => one.task)).size > 1;
    const drawn = CHARTS.map(({ title, unit, lines }) => ({
        title,
        series: all
            .filter((one) => one.name in lines)
            .map((one) => ({
                ...one,
                name: several ? `${one.task} ${lines[one.name] ?? ""}` : (lines[one.name] ?? ""),
                values: one.values.map((value) => value / unit),
            })),
    })).filter((chart) => chart.series.length > 0);
    if (drawn.length === 0) return null;
    return (
        <section class="hardware">
            <h2>Hardware</h2>
            <div class="panels">
                {drawn.map((chart) => (
                    <section class="panel" key={chart.title}>
                        <header>
                            <h2>{chart.title}</h2>
                            <span class="space" />
                            {chart.series.length > LINES_MAX ? (
                                <span class="muted">
                                    the {LINES_MAX} highest of {chart.series.length}
                                </span>
                            ) : null}
                        </header>
                        <Chart series={highest(chart.series)} waiting="" time />
                    </section>
                ))}
            </div>
        </section>
    );
}
