// people.tsx - who may what: one's own tokens; for admins users, projects with their members, the audit.

import { Fragment } from "preact";
import { useState } from "preact/hooks";

import * as api from "../api";
import { ago, duration } from "../format";
import { useLoad, useNow } from "../hooks";
import { ProblemNotice } from "../parts/problem";
import { Sure } from "../parts/sure";
import { useSession } from "../session";
import type { AuditEntry } from "../types";

const ROLES = ["viewer", "member", "admin"];
const GLOBAL_ROLES = ["none", ...ROLES];

function isAdmin(session: api.Session): boolean {
    return session.role === "admin";
}

// What went wrong last, and a way to do things that may go wrong.
function useAct(reload: () => void): { problem: api.ApiError | null; act: <T>(what: Promise<T>, then?: (value: T) => void) => void } {
    const [problem, setProblem] = useState<api.ApiError | null>(null);
    return {
        problem,
        act: (what, then) =>
            void what.then(
                (value) => {
                    setProblem(null);
                    then?.(value);
                    reload();
                },
                (error: api.ApiError) => setProblem(error),
            ),
    };
}

export function PeoplePage({ tab }: { tab: string }): preact.JSX.Element {
    const session = useSession();
    const tabs = isAdmin(session) ? ["tokens", "users", "projects", "audit"] : ["tokens", "projects"];
    return (
        <>
            <div class="top">
                <div class="head">
                    <h1>People</h1>
                </div>
                <nav class="tabs" aria-label="People">
                    {tabs.map((one) => (
                        <a key={one} href={`/people/${one}`} aria-current={one === tab ? "page" : undefined}>
                            {one === "tokens" ? "my tokens" : one}
                        </a>
                    ))}
                </nav>
            </div>
            {tab === "tokens" ? <Tokens /> : null}
            {tab === "users" && tabs.includes(tab) ? <Users /> : null}
            {tab === "projects" ? <Projects /> : null}
            {tab === "audit" && tabs.includes(tab) ? <Audit /> : null}
            {tabs.includes(tab) ? null : <p class="muted">This is for administrators.</p>}
        </>
    );
}

function Roles({ value, roles, label, change }: { value: string; roles: string[]; label: string; change: (role: string) => void }): preact.JSX.Element {
    return (
        <select class="short" aria-label={label} value={value} onChange={(event) => change(event.currentTarget.value)}>
            {roles.map((role) => (
                <option key={role} value={role}>
                    {role}
                </option>
            ))}
        </select>
    );
}

// Something that is shown this once.
function Once({ text, secret, close }: { text: string; secret: string; close: () => void }): preact.JSX.Element {
    const [copied, setCopied] = useState(false);
    return (
        <div class="notice" role="status">
            <p>{text}</p>
            <p>
                <code class="break">{secret}</code>
            </p>
            <p>
                <button class="button" onClick={() => void navigator.clipboard.writeText(secret).then(() => setCopied(true))}>
                    {copied ? "Copied" : "Copy"}
                </button>{" "}
                <button class="button" onClick={close}>
                    Done
                </button>
            </p>
        </div>
    );
}

// --- tokens ---

function Tokens(): preact.JSX.Element {
    const session = useSession();
    const { value, error, reload } = useLoad(api.tokens, []);
    const { problem, act } = useAct(reload);
    const projects = useLoad(api.projects, []).value ?? [];
    const [project, setProject] = useState("");
    const mine = project ? [session.role, session.projects[project]] : [session.role, ...Object.values(session.projects)];
    const best = ROLES.filter((role) => mine.includes(role)).at(-1) ?? "viewer";
    const allowed = ROLES.slice(0, ROLES.indexOf(best) + 1);
    const [name, setName] = useState("");
    const [wanted, setRole] = useState(best);
    const role = allowed.includes(wanted) ? wanted : best;
    const [days, setDays] = useState("90");
    const [secret, setSecret] = useState("");
    const now = useNow();
    const shown = (value ?? []).filter((token) => token.kind !== "login");
    return (
        <>
            <p class="muted">
                Scripts and the command line sign in with a token: <code>TRAINYARD_URL={location.origin} TRAINYARD_TOKEN=… trainyard jobs</code>
            </p>
            <form
                class="row"
                onSubmit={(event) => {
                    event.preventDefault();
                    act(api.addToken({ name, role, project: project || null, days: Number(days) }), (made) => {
                        setSecret(made);
                        setName("");
                    });
                }}
            >
                <input type="text" required maxLength={128} placeholder="What it is for" aria-label="Name of the token" value={name} onInput={(event) => setName(event.currentTarget.value)} />
                <Roles value={role} roles={allowed} label="Role of the token" change={setRole} />
                <select class="short" aria-label="Project of the token" value={project} onChange={(event) => setProject(event.currentTarget.value)}>
                    <option value="">in all my projects</option>
                    {projects.map((one) => (
                        <option key={one.name} value={one.name}>
                            in {one.name} alone
                        </option>
                    ))}
                </select>
                <select class="short" aria-label="How long it is good" value={days} onChange={(event) => setDays(event.currentTarget.value)}>
                    <option value="7">7 days</option>
                    <option value="90">90 days</option>
                    <option value="365">a year</option>
                    <option value="0">for ever</option>
                </select>
                <button class="button accent" type="submit">
                    Make a token
                </button>
            </form>
            {secret ? <Once text="This is shown once: keep it where secrets are kept." secret={secret} close={() => setSecret("")} /> : null}
            {problem ? <ProblemNotice error={problem} /> : null}
            {error ? <ProblemNotice error={error} retry={reload} /> : null}
            {value || error ? null : <p class="muted">Loading…</p>}
            {value && shown.length === 0 ? <p class="muted">You have no tokens.</p> : null}
            {shown.length > 0 ? (
                <div class="wide">
                    <table>
                        <thead>
                            <tr>
                                <th>Token</th>
                                <th>Kind</th>
                                <th>At most</th>
                                <th>In</th>
                                <th class="right">Made</th>
                                <th class="right">Last used</th>
                                <th class="right">Ends in</th>
                                <th />
                            </tr>
                        </thead>
                        <tbody>
                            {shown.map((token) => (
                                <tr key={token.id}>
                                    <td class="break">{token.name}</td>
                                    <td>{token.kind === "session" ? "browser" : token.kind}</td>
                                    <td>{token.role}</td>
                                    <td class="break">{token.project ?? "all projects"}</td>
                                    <td class="right" title={token.created_at}>
                                        {ago(token.created_at, now)}
                                    </td>
                                    <td class="right" title={token.used_at ?? undefined}>
                                        {token.used_at ? ago(token.used_at, now) : "never"}
                                    </td>
                                    <td class="right" title={token.expires_at ?? undefined}>
                                        {token.expires_at ? duration((Date.parse(token.expires_at) - now) / 1000) : "never"}
                                    </td>
                                    <td class="right">
                                        <Sure label="Revoke" title={`Revoke ${token.name}`} act={() => act(api.revokeToken(token.id))} />
                                    </td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </div>
            ) : null}
        </>
    );
}

// --- users ---

function Users(): preact.JSX.Element {
    const session = useSession();
    const { value, error, reload } = useLoad(api.users, []);
    const { problem, act } = useAct(reload);
    const [name, setName] = useState("");
    const [role, setRole] = useState("member");
    const [link, setLink] = useState({ user: "", url: "" });
    const now = useNow();
    return (
        <>
            <form
                class="row"
                onSubmit={(event) => {
                    event.preventDefault();
                    act(
                        api.addUser(name, role).then(async (user) => ({ user: user.name, url: await api.userLink(user.name) })),
                        (made) => {
                            setLink(made);
                            setName("");
                        },
                    );
                }}
            >
                <input
                    type="text"
                    required
                    maxLength={128}
                    pattern="[A-Za-z0-9._\-]+"
                    title="letters, digits, '.', '_' and '-'"
                    placeholder="Name"
                    aria-label="Name of the user"
                    value={name}
                    onInput={(event) => setName(event.currentTarget.value)}
                />
                <Roles value={role} roles={GLOBAL_ROLES} label="Role in every project" change={setRole} />
                <button class="button accent" type="submit">
                    Add a user
                </button>
            </form>
            {link.url ? <Once text={`Give ${link.user} this link: it signs in once, within a day, and a password can be set then.`} secret={link.url} close={() => setLink({ user: "", url: "" })} /> : null}
            {problem ? <ProblemNotice error={problem} /> : null}
            {error ? <ProblemNotice error={error} retry={reload} /> : null}
            {value || error ? null : <p class="muted">Loading…</p>}
            {value ? (
                <div class="wide">
                    <table>
                        <thead>
                            <tr>
                                <th>User</th>
                                <th>Role in every project</th>
                                <th>Password</th>
                                <th class="right">Added</th>
                                <th />
                            </tr>
                        </thead>
                        <tbody>
                            {value.map((user) => (
                                <tr key={user.name} class={user.disabled ? "muted" : ""}>
                                    <td>
                                        {user.name}
                                        {user.disabled ? " (disabled)" : ""}
                                    </td>
                                    <td>
                                        <Roles
                                            value={user.role}
                                            roles={GLOBAL_ROLES}
                                            label={`Role of ${user.name}`}
                                            change={(next) => act(api.changeUser(user.name, { role: next }))}
                                        />
                                    </td>
                                    <td>{user.password ? "yes" : "no: comes by link"}</td>
                                    <td class="right" title={user.created_at}>
                                        {ago(user.created_at, now)}
                                    </td>
                                    <td class="right">
                                        <button
                                            class="button"
                                            title={`A link that signs ${user.name} in, once`}
                                            disabled={user.disabled}
                                            onClick={() => act(api.userLink(user.name), (url) => setLink({ user: user.name, url }))}
                                        >
                                            Login link
                                        </button>{" "}
                                        {user.name === session.user ? null : user.disabled ? (
                                            <button class="button" onClick={() => act(api.changeUser(user.name, { disabled: false }))}>
                                                Enable
                                            </button>
                                        ) : (
                                            <Sure label="Disable" title={`${user.name} is signed out and cannot come in`} act={() => act(api.changeUser(user.name, { disabled: true }))} />
                                        )}
                                    </td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </div>
            ) : null}
        </>
    );
}

// --- projects ---

function quotaText(quota: Record<string, number | null>): string {
    const set = Object.entries(quota).filter(([, limit]) => limit !== null && limit !== undefined);
    return set.length ? set.map(([what, limit]) => `${what} ${limit}`).join(", ") : "none";
}

function Projects(): preact.JSX.Element {
    const session = useSession();
    const { value, error, reload } = useLoad(api.projects, []);
    const { problem, act } = useAct(reload);
    const [open, setOpen] = useState("");
    const [name, setName] = useState("");
    return (
        <>
            {isAdmin(session) ? (
                <form
                    class="row"
                    onSubmit={(event) => {
                        event.preventDefault();
                        act(api.addProject(name), () => setName(""));
                    }}
                >
                    <input
                        type="text"
                        required
                        maxLength={128}
                        pattern="[A-Za-z0-9._\-]+"
                        title="letters, digits, '.', '_' and '-'"
                        placeholder="Name"
                        aria-label="Name of the project"
                        value={name}
                        onInput={(event) => setName(event.currentTarget.value)}
                    />
                    <button class="button accent" type="submit">
                        Add a project
                    </button>
                </form>
            ) : null}
            {problem ? <ProblemNotice error={problem} /> : null}
            {error ? <ProblemNotice error={error} retry={reload} /> : null}
            {value || error ? null : <p class="muted">Loading…</p>}
            {value && value.length === 0 ? <p class="muted">No project has a quota, a weight or members yet.</p> : null}
            {value && value.length > 0 ? (
                <table>
                    <thead>
                        <tr>
                            <th>Project</th>
                            <th class="right">Weight</th>
                            <th>Quota</th>
                            <th class="right">CPU time</th>
                            <th class="right">GPU time</th>
                        </tr>
                    </thead>
                    <tbody>
                        {value.map((project) => (
                            <Fragment key={project.name}>
                                <tr>
                                    <td>
                                        {isAdmin(session) || session.projects[project.name] === "admin" ? (
                                            <button class="plain" aria-expanded={open === project.name} onClick={() => setOpen(open === project.name ? "" : project.name)}>
                                                {project.name}
                                            </button>
                                        ) : (
                                            project.name
                                        )}
                                    </td>
                                    <td class="right">{project.weight}</td>
                                    <td>{quotaText(project.quota)}</td>
                                    <td class="right">{duration(project.cpu_seconds)}</td>
                                    <td class="right">{duration(project.gpu_seconds)}</td>
                                </tr>
                                {open === project.name ? (
                                    <tr>
                                        <td colSpan={5}>
                                            <Members project={project.name} />
                                        </td>
                                    </tr>
                                ) : null}
                            </Fragment>
                        ))}
                    </tbody>
                </table>
            ) : null}
        </>
    );
}

function Members({ project }: { project: string }): preact.JSX.Element {
    const { value, error, reload } = useLoad(() => api.members(project), [project]);
    const { problem, act } = useAct(reload);
    const [user, setUser] = useState("");
    const [role, setRole] = useState("member");
    return (
        <>
            {problem ? <ProblemNotice error={problem} /> : null}
            {error ? <ProblemNotice error={error} retry={reload} /> : null}
            {value || error ? null : <p class="muted">Loading…</p>}
            {value && value.length === 0 ? <p class="muted">Nobody has a role in this project alone.</p> : null}
            <ul class="members">
                {(value ?? []).map((member) => (
                    <li key={member.user}>
                        <span>{member.user}</span>
                        <Roles value={member.role} roles={ROLES} label={`Role of ${member.user} in ${project}`} change={(next) => act(api.setMember(project, member.user, next))} />
                        <Sure label="Remove" title={`Take the role of ${member.user} in ${project} away`} act={() => act(api.removeMember(project, member.user))} />
                    </li>
                ))}
            </ul>
            <form
                class="row"
                onSubmit={(event) => {
                    event.preventDefault();
                    act(api.setMember(project, user, role), () => setUser(""));
                }}
            >
                <input type="text" required maxLength={128} placeholder="User" aria-label={`User to add to ${project}`} value={user} onInput={(event) => setUser(event.currentTarget.value)} />
                <Roles value={role} roles={ROLES} label={`Role in ${project}`} change={setRole} />
                <button class="button" type="submit">
                    Add
                </button>
            </form>
        </>
    );
}

// --- the audit ---

function Audit(): preact.JSX.Element {
    const first = useLoad(() => api.audit(), []);
    const [more, setMore] = useState<AuditEntry[]>([]);
    const [cursor, setCursor] = useState<string | null | undefined>(undefined);
    const { problem, act } = useAct(() => undefined);
    const next = cursor === undefined ? first.value?.next_cursor : cursor;
    const items = [...(first.value?.items ?? []), ...more];
    if (first.error) return <ProblemNotice error={first.error} retry={first.reload} />;
    if (!first.value) return <p class="muted">Loading…</p>;
    return (
        <>
            <div class="wide">
                <table>
                    <thead>
                        <tr>
                            <th>When</th>
                            <th>Who</th>
                            <th>By</th>
                            <th>What</th>
                            <th class="right">Answer</th>
                            <th class="hide-narrow">Request</th>
                        </tr>
                    </thead>
                    <tbody>
                        {items.map((entry) => (
                            <tr key={entry.seq}>
                                <td class="nowrap">{entry.time.replace("T", " ").slice(0, 19)}</td>
                                <td>{entry.user}</td>
                                <td>{entry.way}</td>
                                <td class="mono break">
                                    {entry.method} {entry.path}
                                </td>
                                <td class="right">{entry.status}</td>
                                <td class="mono hide-narrow">{entry.request_id}</td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
            {items.length === 0 ? <p class="muted">Nothing has been changed yet.</p> : null}
            {problem ? <ProblemNotice error={problem} /> : null}
            {next ? (
                <p>
                    <button
                        class="button"
                        onClick={() =>
                            act(api.audit(next), (page) => {
                                setMore([...more, ...page.items]);
                                setCursor(page.next_cursor);
                            })
                        }
                    >
                        Show older
                    </button>
                </p>
            ) : null}
        </>
    );
}
