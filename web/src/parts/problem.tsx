// problem.tsx - an error as a person should see it: what is wrong, where, what to do.

import { ApiError } from "../api";

export function ProblemNotice({ error, retry }: { error: ApiError; retry?: () => void }): preact.JSX.Element {
    const said = error.problem.errors.some((field) => field.detail === error.problem.detail); // below, with its place
    return (
        <div class="notice bad" role="alert">
            {said ? null : <p>{error.problem.detail}</p>}
            {error.problem.errors.map((field) => (
                <p key={field.pointer}>
                    <code>{field.pointer}</code> {field.detail}
                    {field.hint ? <span class="muted"> {field.hint}</span> : null}
                </p>
            ))}
            {said || !error.problem.hint ? null : <p class="muted">{error.problem.hint}</p>}
            {error.problem.status >= 500 && error.problem.request_id ? (
                <p class="muted">
                    The server's log has more of it: <code>request={error.problem.request_id}</code>
                </p>
            ) : null}
            {retry ? (
                <button class="button" onClick={retry}>
                    Try again
                </button>
            ) : null}
        </div>
    );
}
