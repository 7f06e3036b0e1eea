/*
 * seal.h - texts that the database keeps encrypted.
 *
 * XChaCha20-Poly1305, with the name of what it is bound to it.  The key is the file
 * DIR/secret.key, for its owner alone, made when the first text is sealed: who has a copy of
 * the database and not of the key has nothing.
 */
#pragma once

#include "db/db.h"

struct arena;

#define DB_SEAL_KEY_FILE "secret.key"

struct db_sealed {
    uint8_t *bytes; /* in the arena */
    size_t size;
};

/*
 * Seals `value`; inside a db_write_fn of DB_CONTROL.  Fails with DATA_LOSS (the key is gone
 * while something is sealed with it, or is damaged), PRECONDITION (others may read the key).
 */
bool db_seal(struct db_conn *conn, const char *folder, const char *name, const char *value,
             struct arena *arena, struct db_sealed *sealed, struct error *err) CHECKED;

/* The text, in the arena; `name` also says in errors what could not be opened. */
bool db_seal_open(const char *folder, const char *name, const struct db_sealed *sealed,
                  struct arena *arena, const char **value, struct error *err) CHECKED;
