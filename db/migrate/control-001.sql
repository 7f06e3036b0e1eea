-- control.db: what must be right.  Times are wall clock in microseconds since 1970, UTC; 0 is "not yet".

-- Single values of the whole database.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO meta (name, value) VALUES
    ('epoch', 0),   -- the newest given to an attempt or a node's session
    ('waiting', 0); -- jobs in state queued

CREATE TABLE users (
    id         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    role       INTEGER NOT NULL CHECK (role BETWEEN 0 AND 2),  -- viewer, member, admin
    created_us INTEGER NOT NULL
) STRICT;
INSERT INTO users (id, name, role, created_us) VALUES (1, 'admin', 2, 0);

-- Secrets by which users, browsers and agents are known; never the secret itself.
CREATE TABLE tokens (
    id         INTEGER PRIMARY KEY,
    hash       BLOB NOT NULL UNIQUE,                           -- SHA-256 of the token's text
    kind       INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 3),  -- api, session, login, join
    user_id    INTEGER NOT NULL REFERENCES users (id),
    name       TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    expires_us INTEGER NOT NULL,                               -- 0: never
    used_us    INTEGER NOT NULL,                               -- a login: when it was used up
    revoked_us INTEGER NOT NULL                                -- revoked, or used up
) STRICT;
CREATE INDEX tokens_by_user ON tokens (user_id);

CREATE TABLE jobs (
    number      INTEGER PRIMARY KEY,                            -- 1, 2, 3: for people and agents
    id          TEXT NOT NULL UNIQUE,                           -- job_ and a ULID: for programs
    user_id     INTEGER NOT NULL REFERENCES users (id),
    name        TEXT NOT NULL,
    project     TEXT NOT NULL,
    queue       TEXT NOT NULL,
    priority    INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 100),
    state       INTEGER NOT NULL CHECK (state BETWEEN 0 AND 7), -- enum job_state
    reason      TEXT NOT NULL,                                  -- code of the last change of state
    text        TEXT NOT NULL,                                  -- the same for people
    spec        TEXT NOT NULL,                                  -- JSON, defaults filled in
    dataset     TEXT NOT NULL,                                  -- its name, '' for none
    restart_max INTEGER NOT NULL CHECK (restart_max >= 0),
    restarts    INTEGER NOT NULL CHECK (restarts BETWEEN 0 AND restart_max),
    attempt     INTEGER NOT NULL CHECK (attempt BETWEEN 0 AND restart_max + 1),
    epoch       INTEGER NOT NULL,                               -- of the newest attempt
    stop_us     INTEGER NOT NULL,                               -- stop.max_seconds, 0: no bound
    retry_us    INTEGER NOT NULL,                               -- not tried again before
    created_us  INTEGER NOT NULL,
    started_us  INTEGER NOT NULL,
    ended_us    INTEGER NOT NULL,
    tasks_count INTEGER NOT NULL CHECK (tasks_count > 0),
    seq         INTEGER NOT NULL,                               -- event of the last change
    idempotency_key TEXT,                                       -- as the client gave it
    body_hash   BLOB,                                           -- of the request that came with it
    UNIQUE (user_id, idempotency_key)
) STRICT;
CREATE INDEX jobs_by_state ON jobs (state, number);
CREATE INDEX jobs_by_name ON jobs (name, number);

-- The edges of the state machine; anything else is a bug that must not reach the disk.
CREATE TRIGGER jobs_edges BEFORE UPDATE OF state ON jobs
WHEN NEW.state <> OLD.state AND NOT (
       (OLD.state = 0 AND NEW.state IN (1, 7))        -- queued: allocated, cancelled
    OR (OLD.state = 1 AND NEW.state IN (2, 4))        -- allocated: starting, stopping
    OR (OLD.state = 2 AND NEW.state IN (3, 4))        -- starting: running, stopping
    OR (OLD.state = 3 AND NEW.state = 4)              -- running: stopping
    OR (OLD.state = 4 AND NEW.state IN (0, 5, 6, 7))) -- stopping: queued again, or an end
BEGIN
    SELECT RAISE(ABORT, 'a job cannot go from this state to that');
END;

CREATE TRIGGER jobs_waiting AFTER INSERT ON jobs WHEN NEW.state = 0
BEGIN
    UPDATE meta SET value = value + 1 WHERE name = 'waiting';
END;
CREATE TRIGGER jobs_waiting_changed AFTER UPDATE OF state ON jobs
WHEN (NEW.state = 0) <> (OLD.state = 0)
BEGIN
    UPDATE meta SET value = value + (NEW.state = 0) - (OLD.state = 0) WHERE name = 'waiting';
END;

-- What the tasks of a job ask for: one row for each role of the spec.
CREATE TABLE needs (
    job          INTEGER NOT NULL REFERENCES jobs (number),
    position     INTEGER NOT NULL,
    role         TEXT NOT NULL,
    replicas     INTEGER NOT NULL CHECK (replicas > 0),
    cpu_millis   INTEGER NOT NULL CHECK (cpu_millis >= 0),
    memory_bytes INTEGER NOT NULL CHECK (memory_bytes >= 0),
    gpus         INTEGER NOT NULL CHECK (gpus >= 0),
    PRIMARY KEY (job, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE attempts (
    epoch      INTEGER PRIMARY KEY,                             -- rises over all jobs
    job        INTEGER NOT NULL REFERENCES jobs (number),
    attempt    INTEGER NOT NULL CHECK (attempt > 0),            -- 1, 2, 3 within the job
    created_us INTEGER NOT NULL,
    started_us INTEGER NOT NULL,                                -- all tasks ran
    ended_us   INTEGER NOT NULL,
    reason     INTEGER NOT NULL CHECK (reason BETWEEN 0 AND 7), -- enum exit_reason
    text       TEXT NOT NULL,
    UNIQUE (job, attempt)
) STRICT;
-- At most one attempt of a job lives.
CREATE UNIQUE INDEX attempts_alive ON attempts (job) WHERE ended_us = 0;

CREATE TABLE tasks (
    epoch        INTEGER NOT NULL REFERENCES attempts (epoch),
    role         TEXT NOT NULL,
    idx          INTEGER NOT NULL,
    job          INTEGER NOT NULL,
    node_id      INTEGER NOT NULL REFERENCES nodes (id),
    state        INTEGER NOT NULL CHECK (state BETWEEN 0 AND 3), -- enum task_state
    cpu_millis   INTEGER NOT NULL,
    memory_bytes INTEGER NOT NULL,
    gpus         INTEGER NOT NULL,
    pid          INTEGER NOT NULL,
    started_us   INTEGER NOT NULL,
    ended_us     INTEGER NOT NULL,
    reason       INTEGER NOT NULL CHECK (reason BETWEEN 0 AND 7),
    exit_code    INTEGER NOT NULL,
    signal       INTEGER NOT NULL,
    error        TEXT NOT NULL,
    step         INTEGER NOT NULL,
    PRIMARY KEY (epoch, role, idx)
) STRICT, WITHOUT ROWID;

-- A task that has exited stays so.
CREATE TRIGGER tasks_exited BEFORE UPDATE OF state ON tasks WHEN OLD.state = 3 AND NEW.state <> 3
BEGIN
    SELECT RAISE(ABORT, 'a task that has exited cannot run again');
END;

-- Everything that happened, in the order of commits; sequence numbers have no gaps.
CREATE TABLE events (
    seq        INTEGER PRIMARY KEY,
    wall_us    INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    job        INTEGER NOT NULL,    -- 0: about no job
    attempt    INTEGER NOT NULL,
    node_id    INTEGER NOT NULL,    -- 0: about no node
    state      INTEGER NOT NULL,    -- -1: none
    state_from INTEGER NOT NULL,    -- -1: none
    role       TEXT NOT NULL,
    idx        INTEGER NOT NULL,
    reason     TEXT NOT NULL,
    text       TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_job ON events (job, seq);

CREATE TRIGGER events_stay BEFORE UPDATE ON events
BEGIN
    SELECT RAISE(ABORT, 'events are never changed');
END;
CREATE TRIGGER events_kept BEFORE DELETE ON events
BEGIN
    SELECT RAISE(ABORT, 'events are never deleted');
END;

CREATE TABLE nodes (
    id               INTEGER PRIMARY KEY,
    name             TEXT NOT NULL UNIQUE,
    identity         TEXT NOT NULL,                                  -- the agent's own secret name
    boot_id          TEXT NOT NULL,                                  -- of the machine
    version          TEXT NOT NULL,
    labels           TEXT NOT NULL,                                  -- JSON object
    epoch            INTEGER NOT NULL,                               -- of its newest session
    state            INTEGER NOT NULL CHECK (state BETWEEN 0 AND 2), -- joined, suspect, lost
    draining         INTEGER NOT NULL CHECK (draining IN (0, 1)),
    cpu_millis       INTEGER NOT NULL,
    memory_bytes     INTEGER NOT NULL,
    gpus             INTEGER NOT NULL,
    gpu_type         TEXT NOT NULL,
    gpu_memory_bytes INTEGER NOT NULL,
    joined_us        INTEGER NOT NULL,
    asked_us         INTEGER NOT NULL                                -- its own clock then, since boot
) STRICT;
