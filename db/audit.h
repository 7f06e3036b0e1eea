/*
 * audit.h - who changed what: a list that is only added to.
 *
 * Each entry has a hash: SHA-256 of the hash before (32 zeros for the first) and of the entry,
 * its numbers as 8 bytes, big end first, each text as its length and its bytes.  Who changes or
 * takes out an entry must write all later ones anew, and cannot where somebody kept a later
 * hash.
 */
#pragma once

#include "db/db.h"

struct arena;

struct db_audit {
    int64_t seq;
    int64_t wall_us;
    const char *user;
    const char *way; /* "socket", "token", "session" */
    const char *method;
    const char *path;
    int status;
    const char *request; /* its id */
    const char *hash;    /* in hexadecimal; "" of before there were hashes */
};

/*
 * The entry goes along with the next change that this thread writes (db_along()); it is
 * borrowed until db_audit_end(), which writes it by itself where nothing changed the database
 * meanwhile, and returns after the commit.  `seq` is given by the database.
 */
void db_audit_begin(const struct db_audit *entry);
bool db_audit_end(struct db *db, const struct db_audit *entry, struct error *err) CHECKED;

/* In place of db_audit_end(): what was asked was refused, and there is no entry, unless
 * something was changed before. */
void db_audit_drop(void);

/*
 * Computes all hashes anew.  `*bad` is the first entry that is not as it was written, or behind
 * which one is missing; 0 when there is none.
 */
bool db_audit_verify(struct db_conn *conn, int64_t *bad, struct error *err) CHECKED;

/*
 * At most `limit` entries before `before` (0: the newest), newest first, of one user (NULL: of
 * all).  `*next` is the `before` of the next page, 0 when there is none.
 */
bool db_audit_list(struct db_conn *conn, int64_t before, const char *user, int limit,
                   struct arena *arena, struct db_audit **entries, int *entries_count,
                   int64_t *next, struct error *err) CHECKED;
