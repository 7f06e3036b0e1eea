-- What the scheduler decides by: queues, projects, what tasks ask of GPUs and nodes, how a job is tried again.

CREATE TABLE queues (
    name     TEXT PRIMARY KEY,
    priority INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 100),  -- its jobs come before those of lower queues
    weight   INTEGER NOT NULL CHECK (weight BETWEEN 1 AND 1000),   -- its share beside queues of the same priority
    preempt  INTEGER NOT NULL CHECK (preempt IN (0, 1))            -- its jobs may end the attempts of lesser ones
) STRICT, WITHOUT ROWID;
INSERT INTO queues (name, priority, weight, preempt) VALUES ('default', 50, 100, 0);
-- Until now a queue was only a word.
INSERT OR IGNORE INTO queues (name, priority, weight, preempt) SELECT DISTINCT queue, 50, 100, 0 FROM jobs;

-- Projects of which something is known; one without a row has no quota, weight 100, and used nothing.
CREATE TABLE projects (
    name         TEXT PRIMARY KEY,
    weight       INTEGER NOT NULL CHECK (weight BETWEEN 1 AND 1000), -- its share beside other projects
    cpu_millis   INTEGER NOT NULL,    -- quota: what it may hold at once; -1: no bound
    memory_bytes INTEGER NOT NULL,
    gpu_millis   INTEGER NOT NULL,
    jobs         INTEGER NOT NULL,
    usage        INTEGER NOT NULL,    -- millionths of the cluster times milliseconds, which fade ...
    usage_us     INTEGER NOT NULL,    -- ... and had faded up to this time
    cpu_ms       INTEGER NOT NULL,    -- used over all time: CPUs times milliseconds
    gpu_ms       INTEGER NOT NULL     -- GPUs times milliseconds
) STRICT, WITHOUT ROWID;

ALTER TABLE needs ADD COLUMN gpu_share        INTEGER NOT NULL DEFAULT 0;    -- thousandths of one GPU, shared
ALTER TABLE needs ADD COLUMN gpu_type         TEXT    NOT NULL DEFAULT '';
ALTER TABLE needs ADD COLUMN gpu_memory_bytes INTEGER NOT NULL DEFAULT 0;    -- of each GPU, or of the share
ALTER TABLE needs ADD COLUMN node_labels      TEXT    NOT NULL DEFAULT '{}'; -- JSON object: the node must have them

ALTER TABLE tasks ADD COLUMN gpu_share INTEGER NOT NULL DEFAULT 0;  -- thousandths of the one GPU
ALTER TABLE tasks ADD COLUMN gpu_mask  INTEGER NOT NULL DEFAULT 0;  -- bit i: it holds the node's GPU i

-- GPUs that are held now get numbers, node by node.
UPDATE tasks SET gpu_mask = ((1 << gpus) - 1) << (
    SELECT coalesce(sum(gpus), 0) FROM tasks AS t
    WHERE t.node_id = tasks.node_id AND t.state <> 3
      AND (t.epoch, t.role, t.idx) < (tasks.epoch, tasks.role, tasks.idx))
WHERE state <> 3 AND gpus > 0;

-- A preempted attempt is not counted as a restart, so a job may make more attempts than its budget allows:
-- a CHECK cannot be changed, so the table is made anew.  What refers to it is checked at the commit.
PRAGMA defer_foreign_keys = 1;
CREATE TABLE jobs_before AS SELECT * FROM jobs;
DROP TABLE jobs;
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
    attempt     INTEGER NOT NULL CHECK (attempt BETWEEN 0 AND restart_max + 1 + preemptions),
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
    preemptions INTEGER NOT NULL DEFAULT 0,                     -- attempts ended for a job of higher priority
    spread      INTEGER NOT NULL DEFAULT 0,                     -- 1: tasks on as many nodes as possible
    retry_on    INTEGER NOT NULL DEFAULT 244,                   -- bit i: tried again after enum exit_reason i
    exclude_bad INTEGER NOT NULL DEFAULT 0,                     -- 1: not tried again on a node that failed it
    array       INTEGER NOT NULL DEFAULT 0,                     -- number of the array's first job, 0: of none
    array_index INTEGER NOT NULL DEFAULT 0,                     -- its place in the grid
    UNIQUE (user_id, idempotency_key)
) STRICT;
INSERT INTO jobs (number, id, user_id, name, project, queue, priority, state, reason, text, spec, dataset,
                  restart_max, restarts, attempt, epoch, stop_us, retry_us, created_us, started_us, ended_us,
                  tasks_count, seq, idempotency_key, body_hash)
SELECT number, id, user_id, name, project, queue, priority, state, reason, text, spec, dataset, restart_max,
       restarts, attempt, epoch, stop_us, retry_us, created_us, started_us, ended_us, tasks_count, seq,
       idempotency_key, body_hash FROM jobs_before;
DROP TABLE jobs_before;
CREATE INDEX jobs_by_state ON jobs (state, number);
CREATE INDEX jobs_by_name ON jobs (name, number);
CREATE INDEX jobs_by_array ON jobs (array, array_index) WHERE array <> 0;

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

-- A job starts when all that it comes after have succeeded.
CREATE TABLE dependencies (
    job   INTEGER NOT NULL REFERENCES jobs (number),
    after INTEGER NOT NULL REFERENCES jobs (number),
    PRIMARY KEY (job, after)
) STRICT, WITHOUT ROWID;

-- Nodes that failed a job which asked to be kept from such.
CREATE TABLE excluded (
    job     INTEGER NOT NULL REFERENCES jobs (number),
    node_id INTEGER NOT NULL REFERENCES nodes (id),
    PRIMARY KEY (job, node_id)
) STRICT, WITHOUT ROWID;
