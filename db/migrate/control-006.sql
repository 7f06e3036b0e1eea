-- People: how they sign in, what a token of theirs may do at most, and who changed what.

ALTER TABLE users ADD COLUMN password TEXT NOT NULL DEFAULT '';    -- argon2id, as libsodium writes it; '': signs in by links alone
ALTER TABLE users ADD COLUMN disabled INTEGER NOT NULL DEFAULT 0;  -- 1: gets in no more; what he made stays
ALTER TABLE tokens ADD COLUMN role INTEGER NOT NULL DEFAULT 2 CHECK (role BETWEEN 0 AND 2); -- at most, whatever its user's is

-- Requests that changed something.
CREATE TABLE audit (
    seq     INTEGER PRIMARY KEY,
    wall_us INTEGER NOT NULL,
    user    TEXT NOT NULL,
    way     TEXT NOT NULL,     -- socket, token, session
    method  TEXT NOT NULL,
    path    TEXT NOT NULL,
    status  INTEGER NOT NULL,
    request TEXT NOT NULL      -- id of the request, as in the log
) STRICT;
CREATE TRIGGER audit_stays BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit is never changed');
END;
CREATE TRIGGER audit_kept BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit is never deleted');
END;
