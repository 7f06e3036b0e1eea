-- What jobs may be told and nobody may read: see db/secrets.h.
CREATE TABLE secrets (
    name       TEXT PRIMARY KEY,
    sealed     BLOB    NOT NULL,                         -- nonce, then the encrypted value with its tag; the name is bound to it
    user_id    INTEGER NOT NULL REFERENCES users (id),   -- who set it last
    created_us INTEGER NOT NULL,
    changed_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
