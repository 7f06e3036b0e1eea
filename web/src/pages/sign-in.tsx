// sign-in.tsx - how to get in: the one-time link that the server prints.

export function SignInPage({ problem }: { problem: string }): preact.JSX.Element {
    return (
        <div class="empty">
            <h1>Sign in to Trainyard</h1>
            {problem ? <p class="error-text">{problem}</p> : null}
            <p>
                Open the link that <code>trainyard serve</code> printed when it started. It works once.
            </p>
            <p class="muted">
                Need another? On the server's machine: <code>trainyard login --dir DIR</code>
            </p>
        </div>
    );
}
