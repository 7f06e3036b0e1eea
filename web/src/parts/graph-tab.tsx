// graph-tab.tsx - loads the graph's drawing code only when somebody looks at a graph.

import { useEffect, useMemo, useState } from "preact/hooks";

import * as api from "../api";
import { useLoad } from "../hooks";
import type { Job } from "../types";
import { ProblemNotice } from "./problem";

type View = typeof import("../graph/view").GraphView;

export function GraphTab({ job }: { job: Job }): preact.JSX.Element {
    const { value, error, reload } = useLoad(() => api.graph(job.id), [job.id, job.state]);
    const { value: rows } = useLoad(() => api.placement(job.id), [job.id, job.state]);
    const placement = useMemo(() => new Map((rows ?? []).map((row) => [row.node, row])), [rows]);
    const [View, setView] = useState<{ view: View } | null>(null);
    useEffect(() => {
        void import("../graph/view").then((module) => setView({ view: module.GraphView }));
    }, []);
    if (error) return <ProblemNotice error={error} retry={reload} />;
    if (!value || !View) return <p class="muted">Loading…</p>;
    if (value.length === 0) return <p class="muted">The graph is made when the job starts; it is {job.state} now.</p>;
    return <View.view nodes={value} placement={placement} />;
}
