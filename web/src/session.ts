// session.ts - who is signed in, for every component; and what he may.

import { createContext } from "preact";
import { useContext } from "preact/hooks";

import type { Session } from "./api";

export const SessionContext = createContext<Session>({ user: "", role: "none", projects: {}, csrf: "" });

export const useSession = (): Session => useContext(SessionContext);

// Whether he may change things: of a project, or of any at all.  The server decides anyway: this hides what it would refuse.
export function useMay(project?: string): boolean {
    const { role, projects } = useSession();
    const roles = project === undefined ? Object.values(projects) : [projects[project]];
    return [role, ...roles].some((one) => one === "member" || one === "admin");
}
