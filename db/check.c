/* check.c - looks both databases through. */

#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "db/audit.h"
#include "db/backup.h"
#include "db/internal.h"

struct check {
    const char *what;  /* before what a row says */
    const char *query; /* a row is a finding: its only column names it */
};

static const struct check pages[] = {
    {"",
     "SELECT integrity_check FROM pragma_integrity_check(100) WHERE integrity_check <> 'ok'"},
    {"a reference to nothing: ",
     "SELECT \"table\" || ' row ' || coalesce(rowid, '?') || ' to ' || parent"
     " FROM pragma_foreign_key_check LIMIT 100"},
    {0},
};

/* Tables are what the events add up to. */
static const struct check control[] = {
    {"",
     "SELECT 'events: ' || count(*) || ' rows in ' || (max(seq) - min(seq) + 1) || ' numbers'"
     " FROM events HAVING count(*) <> max(seq) - min(seq) + 1"},
    {"job #", "SELECT number || ' is in state ' || state || ', its events say ' || said FROM"
              " (SELECT number, state, coalesce((SELECT e.state FROM events e WHERE"
              "  e.job = number AND e.kind IN ('job.submitted', 'job.state')"
              "  ORDER BY e.seq DESC LIMIT 1), -1) AS said FROM jobs)"
              " WHERE state <> said LIMIT 100"},
    {"task ",
     "SELECT epoch || '-' || role || '-' || idx || ' is in state ' || state ||"
     " ', its events say ' || said FROM"
     " (SELECT t.epoch, t.role, t.idx, t.state, coalesce((SELECT e.state FROM events e"
     "  WHERE e.job = t.job AND e.attempt = a.attempt AND e.kind = 'task.state'"
     "  AND e.role = t.role AND e.idx = t.idx ORDER BY e.seq DESC LIMIT 1), -1) AS said"
     "  FROM tasks t JOIN attempts a USING (epoch))"
     " WHERE state <> said LIMIT 100"},
    {"job #", "SELECT job || ' has ended, its attempt ' || a.attempt || ' lives'"
              " FROM attempts a JOIN jobs ON number = job"
              " WHERE a.ended_us = 0 AND state >= 5 LIMIT 100"},
    {"", "SELECT 'meta: ' || value || ' jobs wait, the table has ' || there FROM"
         " (SELECT value, (SELECT count(*) FROM jobs WHERE state = 0) AS there"
         "  FROM meta WHERE name = 'waiting') WHERE value <> there"},
    {"", "SELECT 'meta: the newest epoch is ' || value || ', one that was given is ' || given"
         " FROM (SELECT value, max(coalesce((SELECT max(epoch) FROM attempts), 0),"
         "       coalesce((SELECT max(placed) FROM tasks), 0),"
         "       coalesce((SELECT max(epoch) FROM nodes), 0)) AS given"
         "  FROM meta WHERE name = 'epoch') WHERE value < given"},
    {0},
};

struct looking {
    struct db_conn *conn;
    const char *file;
    db_finding_fn *found;
    void *self;
    int count;
};

static void tell(struct looking *looking, const char *what, const char *text)
{
    char *line = alloc_printf("%s%s", what, text);
    looking->found(looking->self, looking->file, line);
    looking->count++;
    free(line);
}

/* Damage that stops a query is a finding as well. */
static void look(struct looking *looking, const struct check *check)
{
    struct arena *arena = arena_new();
    struct error err;
    int row;
    sqlite3_stmt *stmt = db_query(looking->conn, &err, check->query, "");
    do {
        row = stmt ? db_row(looking->conn, stmt, &err) : -1;
        if (row == 1)
            tell(looking, check->what, db_column_text(stmt, 0, arena));
        if (row < 0)
            tell(looking, "", err.text);
    } while (row == 1);
    arena_free(arena);
}

/* The audit is as it was written. */
static void look_audit(struct looking *looking)
{
    struct error err;
    int64_t bad;
    char text[100];
    if (!db_audit_verify(looking->conn, &bad, &err)) {
        tell(looking, "audit: ", err.text);
    } else if (bad) {
        snprintf(text, sizeof(text), "entry %lld, or what followed it, was changed since",
                 (long long)bad);
        tell(looking, "audit: ", text);
    }
}

static bool check_one(const char *folder, enum db_file file, db_finding_fn *found, void *self,
                      int *count, struct error *err)
{
    char *path = alloc_printf("%s/%s", folder, db_file_names[file]);
    struct looking looking = {NULL, db_file_names[file], found, self, 0};
    bool ok = access(path, F_OK) == 0 || fail(err, NOT_FOUND, "%s is not there", path);
    ok = ok && (looking.conn = db_conn_open(path, false, err));
    for (const struct check *check = pages; ok && check->query; check++)
        look(&looking, check);
    for (const struct check *check = control;
         ok && file == DB_CONTROL && looking.count == 0 && check->query; check++)
        look(&looking, check);
    if (ok && file == DB_CONTROL && looking.count == 0)
        look_audit(&looking);
    db_conn_close(looking.conn);
    free(path);
    *count += looking.count;
    return ok;
}

int db_check(const char *folder, db_finding_fn *found, void *self, struct error *err)
{
    int count = 0;
    return check_one(folder, DB_CONTROL, found, self, &count, err) &&
                   check_one(folder, DB_METRICS, found, self, &count, err)
               ? count
               : -1;
}
