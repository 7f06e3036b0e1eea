-- Jobs that run any program.
ALTER TABLE jobs ADD COLUMN program TEXT NOT NULL DEFAULT ''; -- its command line, '' when the job trains a model
