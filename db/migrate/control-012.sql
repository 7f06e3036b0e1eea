-- Where a task of a cluster for clients serves them, "host:port"; '': nowhere, or not yet.
ALTER TABLE tasks ADD COLUMN address TEXT NOT NULL DEFAULT '';
