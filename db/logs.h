/*
 * logs.h - what tasks wrote on stdout and stderr, byte for byte.
 *
 * db/ship.h writes, this reads; all run on a connection to DB_METRICS.
 */
#pragma once

#include "db/db.h"

struct db_log {
    int64_t id;
    int64_t epoch; /* of the attempt */
    const char *role;
    int index;
    const char *name;    /* "stdout", "stderr" */
    int64_t size;        /* bytes stored */
    int64_t lines_count; /* newlines in them */
};

/* The logs of a job, by epoch, role, index and name. */
bool db_logs_list(struct db_conn *conn, int64_t job, struct arena *arena, struct db_log **logs,
                  int *logs_count, struct error *err) CHECKED;

/* NOT_FOUND when there is none (yet). */
bool db_logs_find(struct db_conn *conn, int64_t epoch, const char *role, int index,
                  const char *name, struct arena *arena, struct db_log *log,
                  struct error *err) CHECKED;

/* At most `size_max` bytes from `offset` on; none at the end.  `*bytes` lives in the arena. */
bool db_logs_read(struct db_conn *conn, int64_t log, int64_t offset, size_t size_max,
                  struct arena *arena, const char **bytes, size_t *size,
                  struct error *err) CHECKED;

/* The offset at which the last `lines_max` lines begin, looking back at most `size_max` bytes.
 */
bool db_logs_tail(struct db_conn *conn, int64_t log, int lines_max, size_t size_max,
                  struct arena *arena, int64_t *offset, struct error *err) CHECKED;
