// cluster.tsx - what is shown of a job whose tasks serve TensorFlow programs: how they are reached, what they say.

import { isTerminal, type Job } from "../types";
import { LogTail } from "./log-tail";

export function ClusterOverview({ job }: { job: Job }): preact.JSX.Element {
    return (
        <div class="panels">
            <section class="panel">
                <header>
                    <h2>For TensorFlow programs</h2>
                </header>
                {isTerminal(job.state) ? (
                    <p class="muted">It has ended; a clone is another one.</p>
                ) : (
                    <>
                        <p>On the machine of the program or notebook, signed in as somebody who may use the job:</p>
                        <pre class="log">trainyard tunnel {job.number}</pre>
                        <p class="muted">prints the grpc:// address for tf.compat.v1.Session and TF_CONFIG, and goes on until the job ends.</p>
                    </>
                )}
            </section>
            <section class="panel">
                <header>
                    <h2>Log</h2>
                    <span class="space" />
                    <a href={`/jobs/${job.number}/logs`}>all of it</a>
                </header>
                <LogTail job={job} lines={200} short />
            </section>
        </div>
    );
}
