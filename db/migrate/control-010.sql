-- Who signs in by another provider: "ISSUER SUB".  NULL: does not.
ALTER TABLE users ADD COLUMN subject TEXT;
CREATE UNIQUE INDEX users_by_subject ON users (subject) WHERE subject IS NOT NULL;
