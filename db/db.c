/* db.c - opens the two files of a folder, and lends out readers. */

#include <pthread.h>
#include <sodium.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "db/folder.h"
#include "db/internal.h"
#include "db/reserve.h"
#include "db/writer.h"

#define ROOM_BYTES (INT64_C(1) << 20) /* a disk with less is full */
#define READERS_KEPT 32               /* idle connections kept for each file */
#define CHECK_BYTES_MAX                                                                        \
    (INT64_C(64) << 20) /* larger files are not read through at every start */

struct reader {
    struct db_conn *conn;
    enum db_file file;
};

struct db {
    char *folder;
    int lock_fd;
    char *paths[2];
    struct db_writer *writers[2];
    struct db_reserve *reserves[2];
    pthread_mutex_t lock; /* guards: idle, idle_count, lent */
    struct db_conn *idle[2][READERS_KEPT];
    int idle_count[2];
    struct reader *lent;
    int lent_count;
    int lent_capacity;
};

/*
 * Reads the file through.  A large metrics.db is not read: it would keep the server from
 * starting; its pages are still checked as they are used.
 */
static bool file_check(const struct db *db, enum db_file file, struct db_conn *conn,
                       struct error *err)
{
    struct stat info;
    if (file == DB_METRICS && stat(db->paths[file], &info) == 0 &&
        info.st_size > CHECK_BYTES_MAX)
        return true;
    return db_pages_check(conn, err);
}

/* To undo one request of a group SQLite keeps pages, many of them in a file of the folder for
 * temporary ones: that may be on the full disk, too. */
static bool without_temporary_files(enum db_file file, struct db_conn *conn, struct error *err)
{
    return file != DB_CONTROL || db_script(conn, "PRAGMA temp_store=MEMORY;", err);
}

static bool file_open(struct db *db, enum db_file file, struct error *err)
{
    db->paths[file] = alloc_printf("%s/%s", db->folder, db_file_names[file]);
    struct db_conn *conn = db_conn_open(db->paths[file], true, err);
    if (!conn)
        return false;
    const char *const *migrations = db_migrations(file);
    if (!file_check(db, file, conn, err) || !db_keep_older(conn, migrations, err) ||
        !db_migrate(conn, migrations, err) || !without_temporary_files(file, conn, err)) {
        db_conn_close(conn);
        return false;
    }
    db->reserves[file] = db_reserve_new(db->paths[file]);
    db->writers[file] = db_writer_start(conn, db->reserves[file], db_file_names[file], err);
    if (!db->writers[file]) {
        db_conn_close(conn);
        return false;
    }
    return true;
}

struct db *db_open(const char *folder, struct error *err)
{
    if (sodium_init() < 0)
        return fail_null(err, UNAVAILABLE, "this machine gives no random numbers");
    struct db *db = alloc_bytes(sizeof(*db));
    db->lock_fd = -1;
    db->folder = alloc_text(folder);
    pthread_mutex_init(&db->lock, NULL);
    if (!db_folder_make(folder, err) || (db->lock_fd = db_folder_lock(folder, err)) < 0 ||
        !file_open(db, DB_CONTROL, err) || !file_open(db, DB_METRICS, err) ||
        !db_folder_sync(folder, err)) {
        db_close(db);
        return NULL;
    }
    return db;
}

void db_close(struct db *db)
{
    if (!db)
        return;
    assert(db->lent_count == 0);
    for (int file = 0; file < 2; file++) {
        for (int i = 0; i < db->idle_count[file]; i++)
            db_conn_close(db->idle[file][i]);
        db_writer_stop(db->writers[file]);
        db_reserve_free(db->reserves[file]);
        free(db->paths[file]);
    }
    free(db->lent);
    free(db->folder);
    pthread_mutex_destroy(&db->lock);
    if (db->lock_fd >= 0)
        close(db->lock_fd);
    free(db);
}

const char *db_folder(const struct db *db)
{
    return db->folder;
}

bool db_room(const struct db *db, struct error *err)
{
    struct statvfs disk;
    if (statvfs(db->folder, &disk))
        return true; /* then writing will say */
    uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
    return left >= ROOM_BYTES || fail(err, EXHAUSTED, "disk full: %s has %llu bytes left",
                                      db->folder, (unsigned long long)left);
}

/* Of each thread: what goes along with its next write; fn NULL: nothing, or it went. */
static _Thread_local struct along {
    db_write_fn *fn;
    void *arg;
} along;

struct both {
    db_write_fn *fn;
    void *arg;
    struct along along;
};

static bool both_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct both *both = arg;
    return both->fn(conn, both->arg, err) && both->along.fn(conn, both->along.arg, err);
}

bool db_write(struct db *db, enum db_file file, db_write_fn *fn, void *arg, struct error *err)
{
    struct both both = {fn, arg, along};
    if (file != DB_CONTROL || !along.fn)
        return db_writer_run(db->writers[file], fn, arg, err);
    if (!db_writer_run(db->writers[file], both_run, &both, err))
        return false;
    along.fn = NULL;
    return true;
}

void db_along(db_write_fn *fn, void *arg)
{
    along = (struct along){fn, arg};
}

bool db_along_end(void)
{
    bool went = !along.fn;
    along.fn = NULL;
    return went;
}

void db_watch(struct db *db, db_watch_fn *fn, void *self)
{
    db_writer_watch(db->writers[DB_CONTROL], fn, self);
}

uint64_t db_commits(const struct db *db, enum db_file file)
{
    return db_writer_commits(db->writers[file]);
}

struct db_conn *db_read(struct db *db, enum db_file file, struct error *err)
{
    struct db_conn *conn = NULL;
    pthread_mutex_lock(&db->lock);
    if (db->idle_count[file])
        conn = db->idle[file][--db->idle_count[file]];
    pthread_mutex_unlock(&db->lock);

    if (!conn && !(conn = db_conn_open(db->paths[file], false, err)))
        return NULL;
    if (!db_run(conn, err, "BEGIN", "")) {
        db_conn_close(conn);
        return NULL;
    }

    pthread_mutex_lock(&db->lock);
    db->lent = alloc_grow(db->lent, db->lent_count, &db->lent_capacity, sizeof(*db->lent));
    db->lent[db->lent_count++] = (struct reader){conn, file};
    pthread_mutex_unlock(&db->lock);
    return conn;
}

void db_read_done(struct db *db, struct db_conn *conn)
{
    if (!conn)
        return;
    bool usable = db_rollback(conn);

    pthread_mutex_lock(&db->lock);
    int i = 0;
    while (i < db->lent_count && db->lent[i].conn != conn)
        i++;
    assert(i < db->lent_count);
    enum db_file file = db->lent[i].file;
    db->lent[i] = db->lent[--db->lent_count];
    bool keep = usable && db->idle_count[file] < READERS_KEPT;
    if (keep)
        db->idle[file][db->idle_count[file]++] = conn;
    pthread_mutex_unlock(&db->lock);

    if (!keep)
        db_conn_close(conn);
}
