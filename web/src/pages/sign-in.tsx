// sign-in.tsx - the ways in: a name and a password, another provider, or the one-time link that the server prints.

import { useEffect, useState } from "preact/hooks";

import * as api from "../api";

export function SignInPage({ problem, signedIn }: { problem: string; signedIn: (session: api.Session) => void }): preact.JSX.Element {
    const [user, setUser] = useState("");
    const [password, setPassword] = useState("");
    const [wrong, setWrong] = useState(problem);
    const [busy, setBusy] = useState(false);
    const [issuer, setIssuer] = useState<string | null>(null);
    useEffect(() => {
        api.provider().then(setIssuer, () => setIssuer(null));
    }, []);
    const send = (event: Event): void => {
        event.preventDefault();
        setBusy(true);
        setWrong("");
        api.signIn(user, password).then(signedIn, (error: api.ApiError) => {
            setBusy(false);
            setWrong(error.message);
        });
    };
    return (
        <div class="empty">
            <h1>Sign in to Trainyard</h1>
            <form class="sign-in" onSubmit={send}>
                <label class="field">
                    <span>User</span>
                    <input type="text" autocomplete="username" autocapitalize="off" required value={user} onInput={(event) => setUser(event.currentTarget.value)} />
                </label>
                <label class="field">
                    <span>Password</span>
                    <input
                        type="password"
                        autocomplete="current-password"
                        required
                        value={password}
                        onInput={(event) => setPassword(event.currentTarget.value)}
                    />
                </label>
                {wrong ? (
                    <p class="error-text" role="alert">
                        {wrong}
                    </p>
                ) : null}
                <button class="button accent" type="submit" disabled={busy}>
                    Sign in
                </button>
            </form>
            {issuer ? (
                <p>
                    <a class="button" href="/oidc/login">
                        Sign in with {new URL(issuer).host}
                    </a>
                </p>
            ) : null}
            <p>
                Or open the link that <code>trainyard serve</code> printed when it started. It works once.
            </p>
            <p class="muted">
                Need another? On the server's machine: <code>trainyard login --dir DIR</code>
            </p>
        </div>
    );
}
