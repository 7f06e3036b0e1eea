-- metrics.db: what is much.  Jobs are numbers of control.db; epochs tell their attempts apart.

-- Single values: 'seq', the number of the newest piece stored.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO meta (name, value) VALUES ('seq', 0);

-- How far each file of each task was read.
CREATE TABLE cursors (
    epoch  INTEGER NOT NULL,
    role   TEXT NOT NULL,
    idx    INTEGER NOT NULL,
    file   TEXT NOT NULL,
    cursor INTEGER NOT NULL,   -- everything before this is stored
    PRIMARY KEY (epoch, role, idx, file)
) STRICT, WITHOUT ROWID;

-- The newest attempt of each job: older ones may only fill in steps before it began.
CREATE TABLE fences (
    job   INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL,
    step  INTEGER NOT NULL     -- from which it resumes; -1: it has not said so yet
) STRICT;

-- One row for each piece of a task's output that changed something, for streams that resume.
CREATE TABLE changes (
    job    INTEGER NOT NULL,
    seq    INTEGER NOT NULL,   -- of the piece
    kind   INTEGER NOT NULL,   -- 1 points, 2 log bytes, 3 artifact
    series INTEGER NOT NULL,   -- series.id, logs.id, or a number within the piece
    first  INTEGER NOT NULL,   -- step, or byte
    last   INTEGER NOT NULL,   -- step, or byte after the end
    name   TEXT NOT NULL,      -- of an artifact: kind/name
    PRIMARY KEY (job, seq, kind, series)
) STRICT, WITHOUT ROWID;

-- What one task reports under one name.
CREATE TABLE series (
    id           INTEGER PRIMARY KEY,
    job          INTEGER NOT NULL,
    role         TEXT NOT NULL,
    idx          INTEGER NOT NULL,
    name         TEXT NOT NULL,
    points_count INTEGER NOT NULL,
    last_step    INTEGER NOT NULL,
    last_wall_us INTEGER NOT NULL,
    last_value   REAL,         -- NULL: not a number
    UNIQUE (job, role, idx, name)
) STRICT;

CREATE TABLE points (
    series  INTEGER NOT NULL,
    step    INTEGER NOT NULL,
    wall_us INTEGER NOT NULL,
    value   REAL,              -- NULL: not a number
    PRIMARY KEY (series, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE logs (
    id          INTEGER PRIMARY KEY,
    job         INTEGER NOT NULL,
    epoch       INTEGER NOT NULL,
    role        TEXT NOT NULL,
    idx         INTEGER NOT NULL,
    name        TEXT NOT NULL,     -- stdout, stderr
    size        INTEGER NOT NULL,
    lines_count INTEGER NOT NULL,
    UNIQUE (epoch, role, idx, name)
) STRICT;
CREATE INDEX logs_by_job ON logs (job, epoch);

-- The bytes of logs, in chunks of up to 64 KiB; small pieces are added to the last chunk.
CREATE TABLE chunks (
    id     INTEGER PRIMARY KEY,
    log    INTEGER NOT NULL,
    start  INTEGER NOT NULL,   -- offset of its first byte in the log
    bytes  BLOB NOT NULL,
    UNIQUE (log, start)
) STRICT;

CREATE TABLE artifacts (
    id      INTEGER PRIMARY KEY,
    job     INTEGER NOT NULL,
    kind    TEXT NOT NULL,     -- graph, placement, run, trace
    name    TEXT NOT NULL,
    epoch   INTEGER NOT NULL,
    step    INTEGER NOT NULL,
    wall_us INTEGER NOT NULL,
    bytes   BLOB NOT NULL,
    UNIQUE (job, kind, name)
) STRICT;

CREATE TABLE checkpoints (
    job     INTEGER NOT NULL,
    step    INTEGER NOT NULL,
    epoch   INTEGER NOT NULL,
    wall_us INTEGER NOT NULL,
    path    TEXT NOT NULL,
    PRIMARY KEY (job, step)
) STRICT, WITHOUT ROWID;
