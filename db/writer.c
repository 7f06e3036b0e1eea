/*
 * writer.c - group commit.
 *
 * DESIGN: callers put a request, which lives on their stack, into a list and sleep.
 * db_writer_main takes the whole list, runs it in one transaction, and wakes each caller with
 * its own result: while one group is being synced to disk, the next one gathers.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "db/internal.h"
#include "db/reserve.h"
#include "db/writer.h"

#define GROUP_MAX 512 /* requests in one transaction */
#define EXIT_DISK 74  /* the process's status when the disk does not sync */

struct request {
    db_write_fn *fn;
    void *arg;
    struct error *err;
    struct request *next;
    bool ok;
    bool done;
    pthread_cond_t answered;
};

struct db_writer {
    struct db_conn *conn; /* the thread's alone */
    struct db_reserve *reserve;
    const char *name;
    pthread_t thread;
    atomic_uint_fast64_t commits;
    db_watch_fn *watch;
    void *watch_self;
    pthread_mutex_t lock; /* guards: all below, and `done` of each request */
    pthread_cond_t filled;
    struct request *first;
    struct request *last;
    bool stopping;
};

static void group_fail(struct request *group, const struct error *err)
{
    for (struct request *r = group; r; r = r->next) {
        if (r->ok)
            *r->err = *err;
        r->ok = false;
    }
}

/* Runs one request in a savepoint, so that its failure undoes only its own work. */
static bool request_run(struct db_conn *conn, struct request *request)
{
    struct error *err = request->err;
    if (!db_run(conn, err, "SAVEPOINT request", ""))
        return false;
    bool ok = request->fn(conn, request->arg, err);
    if (ok && db_run(conn, err, "RELEASE request", ""))
        return true;

    struct error undo;
    if (db_in_transaction(conn) && !(db_run(conn, &undo, "ROLLBACK TO request", "") &&
                                     db_run(conn, &undo, "RELEASE request", "")))
        db_rollback(conn);
    return false;
}

/* What a failed sync leaves on disk is unknown, and asking again may lie: start anew instead.
 */
static void stop_if_unsynced(struct db_writer *writer, int result)
{
    if (result != SQLITE_IOERR_FSYNC && result != SQLITE_IOERR_DIR_FSYNC)
        return;
    log_line(LOG_ERROR, "db",
             "file=%s msg=\"the disk failed to sync; stopping, what was answered is safe\"",
             writer->name);
    _exit(EXIT_DISK);
}

static void pass(const struct db_writer *writer, const char *control, const char *metrics)
{
    failpoint(writer->name == db_file_names[DB_CONTROL] ? control : metrics);
}

static void group_run(struct db_writer *writer, struct request *group)
{
    struct db_conn *conn = writer->conn;
    struct error err;
    if (db_begin(conn) != SQLITE_OK) {
        db_fail(conn, &err);
        group_fail(group, &err);
        return;
    }
    pass(writer, "control.begin", "metrics.begin");

    for (struct request *r = group; r; r = r->next) {
        r->ok = request_run(conn, r);
        if (!db_in_transaction(conn)) {
            /* A full disk may undo the whole transaction, those before and all. */
            struct error all = *r->err;
            if (r->ok)
                fail(&all, INTERNAL, "%s: transaction lost", writer->name);
            group_fail(group, &all);
            for (struct request *rest = r->next; rest; rest = rest->next)
                *rest->err = all;
            db_conn_noted(conn);
            return;
        }
    }

    pass(writer, "control.before_commit", "metrics.before_commit");
    int result = db_commit(conn);
    if (result != SQLITE_OK) {
        db_fail(conn, &err);
        stop_if_unsynced(writer, result);
        db_rollback(conn);
        db_conn_noted(conn);
        group_fail(group, &err);
        return;
    }
    pass(writer, "control.after_commit", "metrics.after_commit");
    atomic_fetch_add(&writer->commits, 1); /* before anybody is answered */
    int64_t seq = db_conn_noted(conn);
    if (seq && writer->watch)
        writer->watch(writer->watch_self, seq);
}

/* Cuts at most GROUP_MAX requests off the front of the list. */
static struct request *group_take_locked(struct db_writer *writer)
{
    struct request *group = writer->first;
    struct request *end = group;
    for (int i = 1; i < GROUP_MAX && end->next; i++)
        end = end->next;
    writer->first = end->next;
    if (!writer->first)
        writer->last = NULL;
    end->next = NULL;
    return group;
}

static void *db_writer_main(void *arg)
{
    struct db_writer *writer = arg;
    pthread_mutex_lock(&writer->lock);
    for (;;) {
        while (!writer->first && !writer->stopping)
            pthread_cond_wait(&writer->filled, &writer->lock);
        if (!writer->first)
            break;
        struct request *group = group_take_locked(writer);
        pthread_mutex_unlock(&writer->lock);

        group_run(writer, group);

        pthread_mutex_lock(&writer->lock);
        while (group) {
            struct request *next = group->next; /* the caller may be gone after the signal */
            group->done = true;
            pthread_cond_signal(&group->answered);
            group = next;
        }
        pthread_mutex_unlock(&writer->lock);
        db_reserve_keep(writer->reserve); /* nobody waits for that */
        pthread_mutex_lock(&writer->lock);
    }
    pthread_mutex_unlock(&writer->lock);
    return NULL;
}

struct db_writer *db_writer_start(struct db_conn *conn, struct db_reserve *reserve,
                                  const char *name, struct error *err)
{
    struct db_writer *writer = alloc_bytes(sizeof(*writer));
    writer->conn = conn;
    writer->reserve = reserve;
    writer->name = name;
    pthread_mutex_init(&writer->lock, NULL);
    pthread_cond_init(&writer->filled, NULL);
    if (pthread_create(&writer->thread, NULL, db_writer_main, writer)) {
        free(writer);
        return fail_null(err, EXHAUSTED, "cannot start the writer of %s", name);
    }
    return writer;
}

void db_writer_stop(struct db_writer *writer)
{
    if (!writer)
        return;
    pthread_mutex_lock(&writer->lock);
    writer->stopping = true;
    pthread_cond_signal(&writer->filled);
    pthread_mutex_unlock(&writer->lock);
    pthread_join(writer->thread, NULL);
    db_conn_close(writer->conn);
    pthread_cond_destroy(&writer->filled);
    pthread_mutex_destroy(&writer->lock);
    free(writer);
}

uint64_t db_writer_commits(const struct db_writer *writer)
{
    return atomic_load(&writer->commits);
}

bool db_writer_run(struct db_writer *writer, db_write_fn *fn, void *arg, struct error *err)
{
    assert(!pthread_equal(pthread_self(), writer->thread));
    struct request request = {.fn = fn, .arg = arg, .err = err};
    pthread_cond_init(&request.answered, NULL);

    pthread_mutex_lock(&writer->lock);
    if (writer->last)
        writer->last->next = &request;
    else
        writer->first = &request;
    writer->last = &request;
    pthread_cond_signal(&writer->filled);
    while (!request.done)
        pthread_cond_wait(&request.answered, &writer->lock);
    pthread_mutex_unlock(&writer->lock);

    pthread_cond_destroy(&request.answered);
    return request.ok;
}

void db_writer_watch(struct db_writer *writer, db_watch_fn *fn, void *self)
{
    writer->watch = fn;
    writer->watch_self = self;
}
