// state.tsx - a job's state: a shape, a word and a colour, never colour alone.

import type { State } from "../types";

const SHAPES: Record<State, string> = {
    queued: "○",
    allocated: "◔",
    starting: "◔",
    running: "●",
    stopping: "◑",
    succeeded: "✓",
    failed: "✕",
    cancelled: "–",
};

export function StateMark({ state, word = true }: { state: State; word?: boolean }): preact.JSX.Element {
    return (
        <span class={`state ${state}`} title={state}>
            <span aria-hidden="true">{SHAPES[state]}</span>
            {word ? <span>{state}</span> : <span class="sr" aria-label={state} />}
        </span>
    );
}

export function Bar({ state, step, steps }: { state: State; step: number | null; steps: number | null }): preact.JSX.Element {
    const share = steps && step !== null ? Math.min(1, step / steps) : 0;
    return (
        <div class={`bar ${state}`} role="progressbar" aria-valuenow={Math.round(share * 100)} aria-valuemin={0} aria-valuemax={100}>
            <i style={{ width: `${share * 100}%` }} />
        </div>
    );
}
