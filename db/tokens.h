/*
 * tokens.h - the secrets by which users and agents are known.
 *
 * A token is "ty_" and 43 characters (256 random bits).  Only its SHA-256 is stored: who reads
 * the database cannot log in with it.
 */
#pragma once

#include "db/db.h"
#include "db/users.h"

#define DB_TOKEN_BYTES 64 /* room for the text of a token, with the NUL */

enum token_kind {
    TOKEN_API = 0,     /* Authorization: Bearer */
    TOKEN_SESSION = 1, /* a browser's cookie */
    TOKEN_LOGIN = 2,   /* in a one-time link */
    TOKEN_JOIN = 3,    /* a node's agent */
};

struct db_token {
    int64_t id;
    enum token_kind kind;
    int64_t user_id;
    const char *user;
    enum user_role role; /* in every project: the lesser of the user's and `most` */
    enum user_role best; /* the highest he has in any, of members too; at most `most` */
    enum user_role most; /* the token's own */
    const char *project; /* the only one that it works in; "": all of the user's */
    int64_t rights;      /* of its user, for db_tokens_valid() */
    const char *name;    /* what its owner calls it */
    int64_t created_us;
    int64_t expires_us; /* 0: never */
    int64_t used_us; /* when it was used last, to some minutes, or used up (TOKEN_LOGIN); 0 */
};

struct db_token_new {
    int64_t user_id;
    enum token_kind kind;
    enum user_role role; /* may do what this role may, at most */
    const char *project; /* works in this one alone; NULL: in all of its user's */
    const char *name;
    int64_t expires_us; /* 0: never */
};

/* Makes a token and writes its text, which nobody can ask for again, into `token`. */
bool db_tokens_add(struct db *db, const struct db_token_new *made, char token[DB_TOKEN_BYTES],
                   struct error *err) CHECKED;

/*
 * The token with this text.  UNAUTHENTICATED when unknown, of another kind, expired, revoked,
 * or of a user who is disabled.
 */
bool db_tokens_find(struct db_conn *conn, const char *token, enum token_kind kind,
                    int64_t now_us, struct arena *arena, struct db_token *found,
                    struct error *err) CHECKED;

/*
 * Uses up a login token and makes a session of the same user instead, in one transaction: of
 * two who try the same link, one gets in.  UNAUTHENTICATED as above.
 */
bool db_tokens_exchange(struct db *db, const char *login, int64_t now_us, int64_t expires_us,
                        char session[DB_TOKEN_BYTES], struct error *err) CHECKED;

bool db_tokens_list(struct db_conn *conn, int64_t user_id, struct arena *arena,
                    struct db_token **tokens, int *tokens_count, struct error *err) CHECKED;

/* Writes down that it was used. */
bool db_tokens_use(struct db *db, int64_t id, int64_t now_us, struct error *err) CHECKED;

/* NOT_FOUND when there is none, or it is of another than `user_id` (0: of anybody). */
bool db_tokens_revoke(struct db *db, int64_t id, int64_t user_id, struct error *err) CHECKED;

/* Whether somebody revoked the token; one that is not known was not. */
bool db_tokens_revoked(struct db_conn *conn, int64_t id, bool *revoked,
                       struct error *err) CHECKED;

/* Whether the token is neither revoked nor expired, and its user may do what he could when he
 * had `rights`. */
bool db_tokens_valid(struct db_conn *conn, int64_t id, int64_t rights, int64_t now_us,
                     bool *valid, struct error *err) CHECKED;
