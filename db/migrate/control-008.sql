-- Who is told of the states of a project's jobs: see db/webhooks.h and db/deliveries.h.

CREATE TABLE webhooks (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    project    TEXT    NOT NULL,
    url        TEXT    NOT NULL,
    states     INTEGER NOT NULL,                         -- bit 1 << state: which it is told of
    sealed     BLOB    NOT NULL,                         -- what deliveries are signed with, as in secrets; bound to "webhook:ID"
    disabled   INTEGER NOT NULL CHECK (disabled IN (0, 1)),
    after_seq  INTEGER NOT NULL,                         -- events up to this one have their deliveries
    user_id    INTEGER NOT NULL REFERENCES users (id),   -- who made it
    created_us INTEGER NOT NULL
) STRICT;

CREATE TABLE deliveries (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook_id INTEGER NOT NULL REFERENCES webhooks (id),
    seq        INTEGER NOT NULL, -- of the event; 0: a test
    created_us INTEGER NOT NULL,
    tries      INTEGER NOT NULL, -- since it was last asked for
    next_us    INTEGER NOT NULL, -- not tried before this; 0: it is over
    tried_us   INTEGER NOT NULL, -- 0: never
    status     INTEGER NOT NULL, -- HTTP status of the last try; 0: no answer
    error      TEXT    NOT NULL  -- why the last try did not succeed; '' when it did
) STRICT;
CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, id);
CREATE INDEX deliveries_waiting ON deliveries (webhook_id, next_us, id) WHERE next_us > 0;
CREATE INDEX deliveries_over ON deliveries (webhook_id, id) WHERE next_us = 0;
