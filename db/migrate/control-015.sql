-- Lists by priority, a page at a time.
CREATE INDEX jobs_by_priority ON jobs (priority, number);
