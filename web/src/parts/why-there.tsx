// why-there.tsx - why a node is on its device, and what spoke against each of the others.

import { milliseconds } from "../format";
import type { Placed } from "../types";

/** "/job:ps/replica:0/task:1/device:CPU:0" as "ps/1 CPU:0"; of a job with one task "CPU:0". */
export function deviceOf(name: string): string {
    return name
        .replace(/^\/job:localhost\/replica:\d+\/task:\d+\/device:/, "")
        .replace(/^\/job:([^/]+)\/replica:\d+\/task:(\d+)\/device:/, "$1/$2\u00a0");
}

export function WhyThere({ placed }: { placed: Placed }): preact.JSX.Element {
    const others = (placed.candidates ?? []).filter((one) => one.rejected);
    const taken = placed.candidates?.find((one) => !one.rejected);
    const done = (us: number | undefined): string => (us === undefined ? "" : ` (done after ${milliseconds(us)} of the step)`);
    return (
        <>
            {placed.reason}
            {done(taken?.done_us)}
            {others.length > 0 ? (
                <details>
                    <summary>{others.length === 1 ? "not on 1 other" : `not on ${others.length} others`}</summary>
                    <ul class="why">
                        {others.map((one) => (
                            <li key={one.device}>
                                <span class="mono" title={one.device}>
                                    {deviceOf(one.device)}
                                </span>
                                : {one.rejected}
                                {done(one.done_us)}
                            </li>
                        ))}
                    </ul>
                </details>
            ) : null}
        </>
    );
}
