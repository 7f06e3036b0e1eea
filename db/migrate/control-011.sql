-- jobs.archived also says 2: removed, nobody finds it; 3: what it left is gone too.
CREATE INDEX jobs_removed ON jobs (number) WHERE archived = 2;
