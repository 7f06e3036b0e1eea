// live.ts - the only place that opens a socket: one websocket for the whole page.
//
// Every event has a sequence number.  A subscription remembers the last one it has seen, so after
// a lost connection it goes on where it was; when the server's history no longer reaches back that
// far it says "gap" and the subscriber reads again through REST.

export interface StreamEvent {
    seq: number;
    topic: string;
    job?: string;
    attempt?: number;
    data: unknown;
}

export type Link = "connecting" | "live" | "reconnecting" | "signed-out";

interface Subscription {
    id: number;
    topic: string;
    job: string | undefined;
    seq: number | undefined;
    events: (events: StreamEvent[]) => void;
    gap: () => void;
}

const RETRY_MS = [200, 500, 1000, 2000, 5000];

let socket: WebSocket | null = null;
let tries = 0;
let nextId = 1;
let lastMessageAt = 0;
const subscriptions = new Map<number, Subscription>();
const watchers = new Set<(link: Link) => void>();
let link: Link = "connecting";

export function linkState(): { link: Link; age: number } {
    return { link, age: lastMessageAt ? (Date.now() - lastMessageAt) / 1000 : 0 };
}

// Who watches the link wants one, whether or not the page subscribes to anything.
export function watchLink(watcher: (link: Link) => void): () => void {
    watchers.add(watcher);
    connect();
    return () => watchers.delete(watcher);
}

// Calls `events` for everything on the topic from now on (or after `seq`).  Returns how to stop.
export function subscribe(
    topic: string,
    job: string | undefined,
    events: (events: StreamEvent[]) => void,
    gap: () => void,
    seq?: number,
): () => void {
    const subscription: Subscription = { id: nextId++, topic, job, seq, events, gap };
    subscriptions.set(subscription.id, subscription);
    if (socket?.readyState === WebSocket.OPEN) ask(subscription);
    else connect();
    return () => {
        subscriptions.delete(subscription.id);
        if (socket?.readyState === WebSocket.OPEN)
            socket.send(JSON.stringify({ op: "unsubscribe", id: subscription.id }));
    };
}

function setLink(next: Link): void {
    link = next;
    for (const watcher of watchers) watcher(link);
}

function ask(s: Subscription): void {
    socket?.send(
        JSON.stringify({ op: "subscribe", id: s.id, topic: s.topic, job: s.job, after_seq: s.seq }),
    );
}

function connect(): void {
    if (socket && socket.readyState !== WebSocket.CLOSED) return;
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    socket = new WebSocket(`${scheme}://${location.host}/api/v1/stream`);
    socket.onopen = () => {
        tries = 0;
        lastMessageAt = Date.now();
        setLink("live");
        for (const s of subscriptions.values()) ask(s);
    };
    socket.onmessage = (message) => receive(String(message.data));
    socket.onclose = (event) => {
        if (event.code === 4401) {
            setLink("signed-out");
            return;
        }
        setLink("reconnecting");
        const wait = RETRY_MS[Math.min(tries++, RETRY_MS.length - 1)] ?? 5000;
        setTimeout(connect, wait * (0.75 + Math.random() / 2));
    };
}

function receive(text: string): void {
    lastMessageAt = Date.now();
    const message = JSON.parse(text) as {
        op: string;
        id?: number;
        seq?: number;
        events?: StreamEvent[];
    };
    const subscription = message.id === undefined ? undefined : subscriptions.get(message.id);
    if (!subscription) return;
    if (message.op === "gap") {
        subscription.seq = message.seq ?? subscription.seq;
        subscription.gap();
    } else if (message.op === "batch" || message.op === "snapshot") {
        const events = message.events ?? [];
        const last = events.at(-1);
        if (message.seq !== undefined) subscription.seq = message.seq;
        else if (last) subscription.seq = last.seq;
        if (events.length) subscription.events(events);
    }
}
