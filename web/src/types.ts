// types.ts - what the REST API and the stream carry, as far as the page uses it.

export type State =
    | "queued"
    | "allocated"
    | "starting"
    | "running"
    | "stopping"
    | "succeeded"
    | "failed"
    | "cancelled";

export interface Job {
    id: string;
    number: number;
    name: string;
    project: string;
    state: State;
    reason: string | null;
    created_at: string;
    started_at: string | null;
    ended_at: string | null;
    attempt: number;
    step: number | null;
    steps: number | null;
    last: Record<string, number>;
    nodes: string[];
    program: string | null; // its command line, when it trains no model
    cluster: boolean; // its tasks serve TensorFlow programs
    tags: string[];
    paused: boolean;
}

export interface Artifact {
    task: string;
    path: string;
    size: number;
}

export interface Explanation {
    code: string;
    text: string;
    suggestions?: string[];
    blockers?: { text: string }[];
}

export interface Series {
    name: string;
    task: string;
    steps: number[];
    values: number[];
}

export interface TaskTimes {
    task: string;
    us: number;
    wait_us: number;
    /** Of that, while values were on their way. */
    receive_us?: number;
    send_us?: number;
    from: { task: string; wait_us: number; receive_us?: number; bytes: number; tensors: number }[];
}

/** When a worker has done its share of a step, the median of the others, and the last steps one by one (-1: it had none). */
export interface Arrival {
    task: string;
    us: number;
    max_us: number;
    /** How long it waits for its batch, before that. */
    input_us?: number;
    others_us: number;
    recent_us?: number[];
}

export interface StepTimes {
    step: number;
    steps: number;
    us: number;
    input_us: number;
    tasks: TaskTimes[];
    arrivals?: Arrival[];
}

export interface Placed {
    node: string;
    op: string;
    device: string;
    requested?: string;
    reason?: string;
    /** Devices; `rejected` is null for the one taken, `done_us` when it would be done there. */
    candidates?: { device: string; rejected?: string | null; done_us?: number }[];
}

export interface GraphNode {
    name: string;
    op: string;
    device: string;
    inputs: string[];
    shapes?: string[];
    attrs?: Record<string, string>;
}

export interface LogLine {
    task: string;
    stream: string;
    text: string;
}

export interface JobEvent {
    seq: number;
    time: string;
    type: string;
    text: string;
}

export interface Node {
    name: string;
    state: string;
    cpus: number;
    cpus_used: number;
    memory_bytes: number;
    memory_bytes_used: number;
    gpus: number;
    gpus_used: number;
    version?: string;
    last_seen_at?: string;
}

export interface Example {
    name: string;
    description: string;
    spec: Record<string, unknown>;
}

export interface Dataset {
    name: string;
    state: "ready" | "uploading" | "damaged";
    format?: string;
    train?: number;
    validation?: number;
    test?: number;
    size?: number;
    files_count?: number;
    added_by?: string | null;
    added_at?: string | null;
    error?: string;
    columns?: { name: string; role: string; dtype: string; shape: number[]; classes: number }[];
    files?: { path: string; size: number }[];
}

export interface User {
    name: string;
    role: string;
    password: boolean;
    disabled: boolean;
    created_at: string;
}

export interface Passes {
    passes: number;
    seconds: number;
    longest: { at: string; seconds: number; decide_seconds: number; store_seconds: number; messages: number; decisions: number; nodes: number }[];
}

export interface Token {
    id: number;
    kind: string;
    name: string;
    role: string;
    project: string | null;
    created_at: string;
    expires_at: string | null;
    used_at: string | null;
}

export interface Project {
    name: string;
    weight: number;
    quota: Record<string, number | null>;
    cpu_seconds: number;
    gpu_seconds: number;
}

export interface Member {
    project: string;
    user: string;
    role: string;
}

export interface AuditEntry {
    seq: number;
    time: string;
    user: string;
    way: string;
    method: string;
    path: string;
    status: number;
    request_id: string;
}

export interface Problem {
    status: number;
    code: string;
    title: string;
    detail: string;
    hint?: string | undefined;
    request_id?: string | undefined;
    errors: { pointer: string; detail: string; hint?: string }[];
}

export function isTerminal(state: State): boolean {
    return state === "succeeded" || state === "failed" || state === "cancelled";
}
