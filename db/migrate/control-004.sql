-- How a job is tried again, what it comes after, and how it rests.

-- How often a job failed on a node; counted when jobs.exclude_bad is above 0, and that is how often it may.
DROP TABLE excluded;
CREATE TABLE failures (
    job     INTEGER NOT NULL REFERENCES jobs (number),
    node_id INTEGER NOT NULL REFERENCES nodes (id),
    count   INTEGER NOT NULL CHECK (count > 0),
    PRIMARY KEY (job, node_id)
) STRICT, WITHOUT ROWID;

ALTER TABLE jobs ADD COLUMN parameters TEXT NOT NULL DEFAULT '';   -- of an array's job: what it has of the grid, JSON
ALTER TABLE jobs ADD COLUMN paused   INTEGER NOT NULL DEFAULT 0;   -- 1: a person holds it; queued, it does not start
ALTER TABLE jobs ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;   -- 1: ended, and lists leave it out

-- A job that comes after one that failed ends without an attempt.
DROP TRIGGER jobs_edges;
CREATE TRIGGER jobs_edges BEFORE UPDATE OF state ON jobs
WHEN NEW.state <> OLD.state AND NOT (
       (OLD.state = 0 AND NEW.state IN (1, 6, 7))     -- queued: allocated, failed, cancelled
    OR (OLD.state = 1 AND NEW.state IN (2, 4))        -- allocated: starting, stopping
    OR (OLD.state = 2 AND NEW.state IN (3, 4))        -- starting: running, stopping
    OR (OLD.state = 3 AND NEW.state = 4)              -- running: stopping
    OR (OLD.state = 4 AND NEW.state IN (0, 5, 6, 7))) -- stopping: queued again, or an end
BEGIN
    SELECT RAISE(ABORT, 'a job cannot go from this state to that');
END;
