/* db.c - opens the folder, and lends out readers. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sodium.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "db/internal.h"
#include "db/writer.h"

#define READERS_KEPT 32 /* idle connections kept for each file */
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
    pthread_mutex_t lock; /* guards: idle, idle_count, lent */
    struct db_conn *idle[2][READERS_KEPT];
    int idle_count[2];
    struct reader *lent;
    int lent_count;
    int lent_capacity;
};

static const char *const file_names[2] = {"control.db", "metrics.db"};

static bool folder_make(const char *folder, struct error *err)
{
    if (mkdir(folder, 0700) == 0 || errno == EEXIST)
        return true;
    return error_errno(err, errno == ENOSPC ? EXHAUSTED : DENIED, "cannot make the folder %s",
                       folder);
}

/* Who holds the lock has written his process id into it. */
static bool folder_taken(const struct db *db, struct error *err)
{
    char pid[32] = "";
    ssize_t size = pread(db->lock_fd, pid, sizeof(pid) - 1, 0);
    pid[size > 0 ? size : 0] = '\0';
    pid[strcspn(pid, "\n")] = '\0';
    return fail(err, PRECONDITION, "another trainyard serve (pid %s) uses %s",
                pid[0] ? pid : "unknown", db->folder);
}

static bool folder_lock(struct db *db, struct error *err)
{
    char *path = alloc_printf("%s/lock", db->folder);
    db->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (db->lock_fd < 0 && errno == ENOTDIR)
        fail(err, INVALID, "%s is no folder", db->folder);
    else if (db->lock_fd < 0)
        error_errno(err, errno == ENOSPC ? EXHAUSTED : DENIED, "cannot open %s", path);
    free(path);
    if (db->lock_fd < 0)
        return false;
    if (flock(db->lock_fd, LOCK_EX | LOCK_NB))
        return errno == EWOULDBLOCK
                   ? folder_taken(db, err)
                   : error_errno(err, DENIED, "cannot lock %s/lock", db->folder);

    char pid[32];
    int size = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
    if (ftruncate(db->lock_fd, 0) || pwrite(db->lock_fd, pid, (size_t)size, 0) != size)
        return error_errno(err, EXHAUSTED, "cannot write %s/lock", db->folder);
    return true;
}

/*
 * Reads the file through and fails with DATA_LOSS when its pages do not fit together.  A large
 * metrics.db is not read: it would keep the server from starting; its pages are still checked
 * as they are used.
 */
static bool file_check(const struct db *db, enum db_file file, struct db_conn *conn,
                       struct error *err)
{
    struct stat info;
    if (file == DB_METRICS && stat(db->paths[file], &info) == 0 &&
        info.st_size > CHECK_BYTES_MAX)
        return true;

    sqlite3_stmt *stmt = db_query(conn, err, "PRAGMA quick_check(1)", "");
    int row = stmt ? db_row(conn, stmt, err) : -1;
    if (row < 0)
        return false;
    struct arena *arena = arena_new();
    const char *text = row ? db_column_text(stmt, 0, arena) : "ok";
    bool ok = strcmp(text, "ok") == 0;
    if (!ok)
        fail(err, DATA_LOSS, "%s is damaged: %s; restore a copy of it", db->paths[file], text);
    db_query_end(stmt);
    arena_free(arena);
    return ok;
}

static bool file_open(struct db *db, enum db_file file, struct error *err)
{
    db->paths[file] = alloc_printf("%s/%s", db->folder, file_names[file]);
    struct db_conn *conn = db_conn_open(db->paths[file], true, err);
    if (!conn)
        return false;
    const char *const *migrations =
        file == DB_CONTROL ? db_migrate_control : db_migrate_metrics;
    if (!file_check(db, file, conn, err) || !db_migrate(conn, migrations, err) ||
        !(db->writers[file] = db_writer_start(conn, file_names[file], err))) {
        db_conn_close(conn);
        return false;
    }
    return true;
}

/* The names of the files must survive a power cut as their content does. */
static bool folder_sync(const struct db *db, struct error *err)
{
    int fd = open(db->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, DENIED, "cannot open %s", db->folder);
    bool ok = fsync(fd) == 0 || error_errno(err, UNAVAILABLE, "cannot sync %s", db->folder);
    close(fd);
    return ok;
}

struct db *db_open(const char *folder, struct error *err)
{
    if (sodium_init() < 0)
        return fail_null(err, UNAVAILABLE, "this machine gives no random numbers");
    struct db *db = alloc_bytes(sizeof(*db));
    db->lock_fd = -1;
    db->folder = alloc_text(folder);
    pthread_mutex_init(&db->lock, NULL);
    if (!folder_make(folder, err) || !folder_lock(db, err) || !file_open(db, DB_CONTROL, err) ||
        !file_open(db, DB_METRICS, err) || !folder_sync(db, err)) {
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

bool db_write(struct db *db, enum db_file file, db_write_fn *fn, void *arg, struct error *err)
{
    return db_writer_run(db->writers[file], fn, arg, err);
}

void db_watch(struct db *db, db_watch_fn *fn, void *self)
{
    db_writer_watch(db->writers[DB_CONTROL], fn, self);
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
