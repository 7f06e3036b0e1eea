// format.ts - numbers, times and sizes as people read them.  A value that is not known is "–".

export function count(value: number | null | undefined): string {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    const size = Math.abs(value);
    if (size >= 1e9) return `${trim(value / 1e9)}G`;
    if (size >= 1e6) return `${trim(value / 1e6)}M`;
    if (size >= 1e4) return `${trim(value / 1e3)}k`;
    return Number.isInteger(value) ? value.toLocaleString("en").replaceAll(",", "\u202f") : trim(value);
}

function trim(value: number): string {
    return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3).replace(/\.?0+$/, "");
}

export function metric(value: number | null | undefined): string {
    if (value === null || value === undefined) return "–";
    if (!Number.isFinite(value)) return String(value);
    if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6)) return value.toExponential(2);
    return value.toPrecision(4);
}

export function bytes(value: number | null | undefined): string {
    if (value === null || value === undefined) return "–";
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    while (value >= 1024 && unit < units.length - 1) {
        value /= 1024;
        unit++;
    }
    return `${unit === 0 ? value : trim(value)} ${units[unit]}`;
}

export function duration(seconds: number | null | undefined): string {
    if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
    if (seconds < 1) return `${Math.max(0, Math.round(seconds * 1000))}ms`;
    const s = Math.round(seconds);
    if (s < 60) return `${s}s`;
    if (s < 3600) return `${Math.floor(s / 60)}m ${s % 60}s`;
    if (s < 86400) return `${Math.floor(s / 3600)}h ${Math.floor((s % 3600) / 60)}m`;
    return `${Math.floor(s / 86400)}d ${Math.floor((s % 86400) / 3600)}h`;
}

/** Of microseconds. */
export function milliseconds(us: number): string {
    if (us >= 1e6) return `${trim(us / 1e6)} s`;
    return us >= 1000 || us === 0 ? `${trim(us / 1000)} ms` : `${trim(us)} µs`;
}

export function ago(time: string | null | undefined, now: number): string {
    if (!time) return "–";
    const seconds = (now - Date.parse(time)) / 1000;
    return seconds < 5 ? "now" : duration(seconds);
}

export function seconds(from: string | null | undefined, to: string | null | undefined, now: number): number | null {
    if (!from) return null;
    return ((to ? Date.parse(to) : now) - Date.parse(from)) / 1000;
}
