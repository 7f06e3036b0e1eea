-- Which attempt goes on with a series, so that what older ones said of the same steps never mixes with it.
ALTER TABLE series ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0; -- of the newest attempt whose files have reported it
ALTER TABLE series ADD COLUMN since INTEGER NOT NULL DEFAULT 0; -- the first step that it reported: older attempts count before it

-- From now on fences.step is -2 where the attempt has not said yet from which step it resumes.
