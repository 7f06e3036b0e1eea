// api.ts - the only place that calls fetch: one function per thing the page asks for.

import type {
    Artifact,
    AuditEntry,
    Dataset,
    Example,
    Explanation,
    GraphNode,
    Job,
    JobEvent,
    LogLine,
    Member,
    Node,
    Placed,
    StepTimes,
    Problem,
    Passes,
    Project,
    Series,
    Token,
    User,
} from "./types";

export class ApiError extends Error {
    constructor(readonly problem: Problem) {
        super(problem.detail || problem.title);
    }
}

// What was thrown, as an error that can be shown: an answer that is not as expected is one, too.
export function asApiError(thrown: unknown): ApiError {
    if (thrown instanceof ApiError) return thrown;
    return new ApiError({ status: 0, code: "UNREADABLE", title: "The answer cannot be read", detail: `The answer cannot be read: ${String(thrown)}`, errors: [] });
}

let csrf = "";

async function request<T>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<T> {
    let response: Response;
    let text: string;
    try {
        response = await fetch(`/api/v1${path}`, {
            method,
            headers: {
                Accept: "application/json",
                ...(body === undefined ? {} : { "Content-Type": body instanceof Blob ? "application/octet-stream" : "application/json" }),
                ...(method === "GET" ? {} : { "X-CSRF": csrf }),
                ...headers,
            },
            ...(body === undefined ? {} : { body: typeof body === "string" || body instanceof Blob ? body : JSON.stringify(body) }),
        });
        text = await response.text(); // which ends with an error, too, when the server dies meanwhile
    } catch {
        throw new ApiError({
            status: 0,
            code: "UNREACHABLE",
            title: "The server does not answer",
            detail: "The server does not answer. Is `trainyard serve` running?",
            errors: [],
        });
    }
    let value: unknown = null;
    try {
        value = text ? JSON.parse(text) : null;
    } catch {
        value = null;
    }
    if (!response.ok) {
        const problem = (value ?? {}) as Partial<Problem>;
        throw new ApiError({
            status: response.status,
            code: problem.code ?? String(response.status),
            title: problem.title ?? response.statusText,
            detail: problem.detail ?? (response.status === 401 ? "You are signed out." : response.statusText),
            hint: problem.hint,
            request_id: problem.request_id,
            errors: problem.errors ?? [],
        });
    }
    return value as T;
}

export interface Session {
    user: string;
    role: string;
    projects: Record<string, string>;
    csrf: string;
}

function kept(session: Session): Session {
    csrf = session.csrf;
    return session;
}

export const session = async (): Promise<Session> => kept(await request("GET", "/session"));
export const signIn = async (user: string, password: string): Promise<Session> => kept(await request("POST", "/session", { user, password }));
/** The issuer of another provider that one may sign in by; null when there is none. */
export async function provider(): Promise<string | null> {
    const response = await fetch("/oidc");
    return response.ok ? ((await response.json()) as { issuer: string | null }).issuer : null;
}
export const signOut = (): Promise<void> => request("DELETE", "/session");

export async function jobs(cursor?: string): Promise<{ items: Job[]; next_cursor: string | null }> {
    return request("GET", `/jobs?limit=100${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`);
}

export const job = (id: string): Promise<Job> => request("GET", `/jobs/${id}`);
// How many jobs there are in all, on whatever page.
export async function tally(): Promise<{ running: number; queued: number; failed: number }> {
    const total = async (states: string): Promise<number> =>
        (await request<{ total: number }>("GET", `/jobs?total=true&limit=1&fields=number&state=${states}`)).total;
    const [running, queued, failed] = await Promise.all([total("allocated,starting,running,stopping"), total("queued"), total("failed")]);
    return { running, queued, failed };
}

export const explain = (id: string): Promise<Explanation> => request("GET", `/jobs/${id}/explain`);
export const spec = (id: string): Promise<unknown> => request("GET", `/jobs/${id}/spec`);
export const cancel = (id: string): Promise<void> => request("POST", `/jobs/${id}:cancel`, {});
export const pause = (id: string): Promise<void> => request("POST", `/jobs/${id}:pause`, {});
export const resume = (id: string): Promise<void> => request("POST", `/jobs/${id}:resume`, {});
export const clone = (id: string): Promise<Job> => request("POST", `/jobs/${id}:clone`, {});
export const remove = (id: string): Promise<void> => request("DELETE", `/jobs/${id}`);
export const kill = (id: string): Promise<void> => request("POST", `/jobs/${id}:kill`, {});

export async function submit(body: string): Promise<Job> {
    return request("POST", "/jobs", body, { "Idempotency-Key": crypto.randomUUID() });
}

export async function plan(body: string): Promise<{ text: string; layers?: Layer[]; parameters?: number }> {
    return request("POST", "/jobs?dry_run=plan", body);
}

export interface Layer {
    name: string;
    layer: string;
    output_shape: string;
    parameters: number;
}

export async function metrics(id: string): Promise<Series[]> {
    return (await request<{ series: Series[] }>("GET", `/jobs/${id}/metrics?buckets=2000`)).series;
}

export async function hardware(id: string): Promise<Series[]> {
    return (await request<{ series: Series[] }>("GET", `/jobs/${id}/hardware?buckets=2000`)).series;
}

export async function artifacts(id: string): Promise<Artifact[]> {
    return (await request<{ items: Artifact[] }>("GET", `/jobs/${id}/artifacts`)).items;
}

export function artifactUrl(id: string, one: Artifact): string {
    return `/api/v1/jobs/${id}/artifacts/content?task=${encodeURIComponent(one.task)}&path=${encodeURIComponent(one.path)}`;
}

export async function times(id: string): Promise<StepTimes> {
    return await request<StepTimes>("GET", `/jobs/${id}/times`);
}

export async function placement(id: string): Promise<Placed[]> {
    return (await request<{ items: Placed[] }>("GET", `/jobs/${id}/placement`)).items;
}

export async function graph(id: string): Promise<GraphNode[]> {
    return (await request<{ nodes: GraphNode[] }>("GET", `/jobs/${id}/graph`)).nodes;
}

export async function logs(id: string, tail: number): Promise<LogLine[]> {
    return (await request<{ items: LogLine[] }>("GET", `/jobs/${id}/logs?tail=${tail}`)).items;
}

export async function history(id: string): Promise<JobEvent[]> {
    return (await request<{ items: JobEvent[] }>("GET", `/jobs/${id}/history`)).items;
}

export async function nodes(): Promise<Node[]> {
    return (await request<{ items: Node[] }>("GET", "/nodes")).items;
}

export async function examples(): Promise<Example[]> {
    return (await request<{ items: Example[] }>("GET", "/examples")).items;
}

// --- datasets ---

const datasetPath = (name: string): string => `/datasets/${encodeURIComponent(name)}`;

export async function datasets(): Promise<Dataset[]> {
    return (await request<{ items: Dataset[] }>("GET", "/datasets")).items;
}

export const dataset = (name: string): Promise<Dataset> => request("GET", datasetPath(name));
export const removeDataset = (name: string): Promise<void> => request("DELETE", datasetPath(name));
export const publishDataset = (name: string): Promise<Dataset> => request("POST", `${datasetPath(name)}:publish`, {});

export function sendPiece(name: string, path: string, offset: number, piece: Blob): Promise<{ size: number }> {
    return request("PUT", `${datasetPath(name)}/files?path=${encodeURIComponent(path)}&offset=${offset}`, piece);
}

// --- people ---

const userPath = (name: string): string => `/users/${encodeURIComponent(name)}`;

export async function users(): Promise<User[]> {
    return (await request<{ items: User[] }>("GET", "/users")).items;
}

export const addUser = (name: string, role: string): Promise<User> => request("POST", "/users", { name, role });
export const changeUser = (name: string, change: { role?: string; disabled?: boolean }): Promise<User> => request("PATCH", userPath(name), change);

export async function userLink(name: string): Promise<string> {
    return (await request<{ url: string }>("POST", `${userPath(name)}:link`)).url;
}

export const passes = (): Promise<Passes> => request("GET", "/scheduler");

export async function tokens(): Promise<Token[]> {
    return (await request<{ items: Token[] }>("GET", "/tokens")).items;
}

export async function addToken(token: { name: string; role: string; project: string | null; days: number }): Promise<string> {
    return (await request<{ token: string }>("POST", "/tokens", token)).token;
}

export const revokeToken = (id: number): Promise<void> => request("DELETE", `/tokens/${id}`);

export async function projects(): Promise<Project[]> {
    return (await request<{ items: Project[] }>("GET", "/projects")).items;
}

const projectPath = (name: string): string => `/projects/${encodeURIComponent(name)}`;
export const addProject = (name: string): Promise<Project> => request("PUT", projectPath(name), {});

export async function members(project: string): Promise<Member[]> {
    return (await request<{ items: Member[] }>("GET", `${projectPath(project)}/members`)).items;
}

export const setMember = (project: string, user: string, role: string): Promise<Member> =>
    request("PUT", `${projectPath(project)}/members/${encodeURIComponent(user)}`, { role });
export const removeMember = (project: string, user: string): Promise<void> => request("DELETE", `${projectPath(project)}/members/${encodeURIComponent(user)}`);

export async function audit(cursor?: string): Promise<{ items: AuditEntry[]; next_cursor: string | null }> {
    return request("GET", `/audit?limit=100${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`);
}
