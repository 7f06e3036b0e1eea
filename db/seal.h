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
enum { DB_SEAL_DERIVED_BYTES = 32 };

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

/*
 * Bytes that only who has the key can make: the same for equal `purpose` and `number`, whenever
 * asked for, and of others nothing can be told from them (keyed BLAKE2b).  With a connection
 * of DB_CONTROL; fails as db_seal() does.
 */
bool db_seal_derive(struct db_conn *conn, const char *folder, const char *purpose,
                    int64_t number, uint8_t out[DB_SEAL_DERIVED_BYTES],
                    struct error *err) CHECKED;
