// main.tsx - the frame around every page: rail, link state, routes.

import { render } from "preact";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

import * as api from "./api";
import { duration } from "./format";
import { go, useNow, useRoute } from "./hooks";
import { linkState, watchLink } from "./live";
import { DatasetsPage } from "./pages/datasets";
import { JobPage } from "./pages/job";
import { JobsPage } from "./pages/jobs";
import { NewJobPage } from "./pages/new-job";
import { NodesPage } from "./pages/nodes";
import { PeoplePage } from "./pages/people";
import { SignInPage } from "./pages/sign-in";
import { SessionContext, useMay } from "./session";

function Live(): preact.JSX.Element {
    const [, redraw] = useState(0);
    const now = useNow();
    useEffect(() => watchLink(() => redraw((n) => n + 1)), []);
    const { link, age } = linkState();
    void now;
    const text = {
        connecting: "connecting",
        live: "live",
        reconnecting: `reconnecting, data is ${duration(age)} old`,
        "signed-out": "signed out",
    }[link];
    const tone = { connecting: "wait", live: "on", reconnecting: "wait", "signed-out": "off" }[link];
    return (
        <div class="live" role="status" title={link === "live" ? `last message ${duration(age)} ago` : text}>
            <i class={`dot ${tone}`} />
            <span class="label">{text}</span>
        </div>
    );
}

function Item({ path, here, icon, children }: { path: string; here: boolean; icon: string; children: ComponentChildren }): preact.JSX.Element {
    return (
        <a class="item" href={path} aria-current={here ? "page" : undefined} title={String(children)}>
            <span aria-hidden="true">{icon}</span>
            <span class="label">{children}</span>
        </a>
    );
}

/* Who one is; what one may do is in the title. */
function Me({ session }: { session: api.Session }): preact.JSX.Element {
    const own = Object.entries(session.projects).map(([project, role]) => `${role} in ${project}`);
    const rights = [session.role === "none" ? "" : `${session.role} in every project`, ...own].filter(Boolean).join(", ");
    const leave = (): void =>
        void api.signOut().finally(() => {
            sessionStorage.clear(); // a draft of a job is for who wrote it
            location.assign("/");
        });
    return (
        <div class="me">
            <span class="label" title={rights || "no role in any project yet"}>
                {session.user}
            </span>
            <button class="button" title={`Sign out ${session.user}`} onClick={leave}>
                <span aria-hidden="true">→</span>
                <span class="label"> Sign out</span>
            </button>
        </div>
    );
}

function Page({ path }: { path: string }): preact.JSX.Element {
    const people = /^\/people(?:\/([a-z]+))?$/.exec(path);
    const job = /^\/jobs\/([^/]+)(?:\/([a-z]+))?$/.exec(path);
    if (path === "/" || path === "/jobs") return <JobsPage />;
    if (path === "/new") return <NewJobPage />;
    if (path === "/nodes") return <NodesPage />;
    if (path === "/datasets") return <DatasetsPage />;
    if (people) return <PeoplePage tab={people[1] ?? "tokens"} />;
    if (job?.[1]) return <JobPage key={job[1]} id={job[1]} tab={job[2] ?? "overview"} />;
    return (
        <div class="empty">
            <h1>There is no page {path}</h1>
            <p>
                <a href="/jobs">All jobs</a>
            </p>
        </div>
    );
}

function App(): preact.JSX.Element {
    const path = useRoute();
    const [session, setSession] = useState<api.Session | null | undefined>(undefined);
    const [problem, setProblem] = useState("");
    useEffect(() => {
        api.session().then(setSession, (error: api.ApiError) => {
            setProblem(error.problem.status === 401 ? "" : error.message);
            setSession(null);
        });
    }, []);
    if (session === undefined) return <div class="empty muted">Loading…</div>;
    if (session === null) return <SignInPage problem={problem} signedIn={setSession} />;
    return (
        <SessionContext.Provider value={session}>
            <Frame path={path} session={session} />
        </SessionContext.Provider>
    );
}

function Frame({ path, session }: { path: string; session: api.Session }): preact.JSX.Element {
    const may = useMay();
    return (
        <div class="frame">
            <nav class="rail" aria-label="Main">
                <a class="brand" href="/jobs">
                    <svg viewBox="0 0 32 32" aria-hidden="true">
                        <rect width="32" height="32" rx="7" fill="var(--accent)" />
                        <path d="M7 9h18M16 9v15M10 24h12" stroke="var(--on-accent)" stroke-width="3.4" stroke-linecap="round" />
                    </svg>
                    <span>Trainyard</span>
                </a>
                <Item path="/jobs" here={path === "/" || path.startsWith("/jobs")} icon="≡">
                    Jobs
                </Item>
                <Item path="/nodes" here={path === "/nodes"} icon="▦">
                    Nodes
                </Item>
                <Item path="/datasets" here={path === "/datasets"} icon="▤">
                    Datasets
                </Item>
                <Item path="/people" here={path.startsWith("/people")} icon="◉">
                    People
                </Item>
                {may ? (
                    <Item path="/new" here={path === "/new"} icon="+">
                        New job
                    </Item>
                ) : null}
                <Live />
                <Me session={session} />
            </nav>
            <main class="content">
                <Page path={path} />
            </main>
        </div>
    );
}

// Links within the page change the view without a reload.
document.addEventListener("click", (event) => {
    const link = (event.target as Element).closest?.("a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    if (link.origin !== location.origin || link.pathname.startsWith("/api/") || link.target) return;
    event.preventDefault();
    go(link.pathname);
});

const root = document.getElementById("app");
if (root) render(<App />, root);
