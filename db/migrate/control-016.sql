-- 1: each task of the role but the first may be lost, and is placed anew alone: the others go on without it.
ALTER TABLE needs ADD COLUMN alone INTEGER NOT NULL DEFAULT 0 CHECK (alone IN (0, 1));
-- By which epoch its node knows the task: its attempt's, or a later one since it was placed anew.
ALTER TABLE tasks ADD COLUMN placed INTEGER NOT NULL DEFAULT 0;
UPDATE tasks SET placed = epoch;
CREATE INDEX tasks_by_placed ON tasks (placed);
-- 1: it is lost, and the others go on without it.
ALTER TABLE tasks ADD COLUMN away INTEGER NOT NULL DEFAULT 0 CHECK (away IN (0, 1));

-- A task that has exited stays so; one that is placed anew is another.
DROP TRIGGER tasks_exited;
CREATE TRIGGER tasks_exited BEFORE UPDATE OF state ON tasks
WHEN OLD.state = 3 AND NEW.state <> 3 AND NEW.placed <= OLD.placed
BEGIN
    SELECT RAISE(ABORT, 'a task that has exited cannot run again');
END;
CREATE TRIGGER tasks_placed BEFORE UPDATE OF placed ON tasks
WHEN NEW.placed < OLD.placed OR (NEW.placed > OLD.placed AND OLD.state <> 3)
BEGIN
    SELECT RAISE(ABORT, 'a task is placed anew when it has exited, with a later epoch');
END;
