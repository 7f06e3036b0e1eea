// hooks.ts - what components share: the clock, loading through REST, the route.

import { useEffect, useState } from "preact/hooks";

import { ApiError, asApiError } from "./api";

// The present time, renewed every second while the component is shown.
export function useNow(): number {
    const [now, setNow] = useState(Date.now());
    useEffect(() => {
        const timer = setInterval(() => setNow(Date.now()), 1000);
        return () => clearInterval(timer);
    }, []);
    return now;
}

export interface Loaded<T> {
    value: T | null;
    error: ApiError | null;
    reload: () => void;
    set: (change: (value: T | null) => T | null) => void;
}

// Loads once and again at each reload(); an older answer never replaces a newer one.
export function useLoad<T>(load: () => Promise<T>, keys: unknown[]): Loaded<T> {
    const [value, setValue] = useState<T | null>(null);
    const [error, setError] = useState<ApiError | null>(null);
    const [round, setRound] = useState(0);
    useEffect(() => {
        let current = true;
        load().then(
            (loaded) => {
                if (!current) return;
                setValue(loaded);
                setError(null);
            },
            (problem: unknown) => {
                if (current) setError(asApiError(problem));
            },
        );
        return () => {
            current = false;
        };
    }, [...keys, round]);
    return { value, error, reload: () => setRound((n) => n + 1), set: setValue };
}

export function useRoute(): string {
    const [path, setPath] = useState(location.pathname);
    useEffect(() => {
        const changed = (): void => setPath(location.pathname);
        addEventListener("popstate", changed);
        return () => removeEventListener("popstate", changed);
    }, []);
    return path;
}

export function go(path: string): void {
    history.pushState(null, "", path);
    dispatchEvent(new PopStateEvent("popstate"));
    scrollTo(0, 0);
}
