-- The only project that a token works in; '': in all of its user's.
ALTER TABLE tokens ADD COLUMN project TEXT NOT NULL DEFAULT '';
