// log-tail.tsx - the end of the job's output, growing; stays put when scrolled up.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import * as api from "../api";
import { useLoad } from "../hooks";
import { subscribe } from "../live";
import type { Job, LogLine } from "../types";
import { ProblemNotice } from "./problem";

export function LogTail({ job, lines, short = false }: { job: Job; lines: number; short?: boolean }): preact.JSX.Element {
    const { value, error, reload, set } = useLoad(() => api.logs(job.id, lines), [job.id, lines]);
    const [following, setFollowing] = useState(true);
    const place = useRef<HTMLPreElement>(null);

    useEffect(
        () =>
            subscribe(
                "job.logs",
                job.id,
                (events) => {
                    const added = events.flatMap((event) => (event.data as { lines?: LogLine[] }).lines ?? []);
                    set((old) => [...(old ?? []), ...added].slice(-lines));
                },
                reload,
            ),
        [job.id, lines],
    );
    useLayoutEffect(() => {
        if (following && place.current) place.current.scrollTop = place.current.scrollHeight;
    }, [value, following]);

    if (error) return <ProblemNotice error={error} retry={reload} />;
    const shown = value ?? [];
    return (
        <>
            <pre
                ref={place}
                class={short ? "log short" : "log"}
                tabIndex={0}
                aria-label="Log"
                onScroll={(event) => {
                    const box = event.currentTarget;
                    setFollowing(box.scrollHeight - box.scrollTop - box.clientHeight < 24);
                }}
            >
                {shown.length === 0
                    ? value
                        ? "Nothing written yet."
                        : "Loading…"
                    : shown.map((line, index) => (
                          <span key={index} class={line.stream}>
                              {line.text}
                              {"\n"}
                          </span>
                      ))}
            </pre>
            {following ? null : (
                <button class="button" onClick={() => setFollowing(true)}>
                    Jump to the end
                </button>
            )}
        </>
    );
}
