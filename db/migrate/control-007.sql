-- Rights in single projects.

ALTER TABLE users ADD COLUMN projects_only INTEGER NOT NULL DEFAULT 0; -- 1: has no role everywhere, whatever `role` says, but those of members
ALTER TABLE users ADD COLUMN rights INTEGER NOT NULL DEFAULT 0;        -- counts changes of what the user may do: what is connected is asked anew

-- The role of a user in a project; the higher of it and the one he has everywhere holds.
CREATE TABLE members (
    user_id INTEGER NOT NULL REFERENCES users (id),
    project TEXT NOT NULL,
    role    INTEGER NOT NULL CHECK (role BETWEEN 0 AND 2),
    PRIMARY KEY (user_id, project)
) STRICT, WITHOUT ROWID;
CREATE INDEX members_by_project ON members (project);
