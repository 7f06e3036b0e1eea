/* restore.c - puts a backup in the place of a server's databases. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "db/backup.h"
#include "db/events.h"
#include "db/folder.h"
#include "db/internal.h"
#include "db/nodes.h"

#define GENERATIONS_MAX (1 << 20) /* epochs stay numbers that JSON can hold */

struct restore {
    const char *folder;
    const char *from;
    char *partial; /* where the new files are made ready */
    struct db_restored *restored;
};

static bool move(const char *from, const char *to, struct error *err)
{
    return rename(from, to) == 0 || error_errno(err, errno == ENOSPC ? EXHAUSTED : DENIED,
                                                "cannot rename %s to %s", from, to);
}

/* --- the new files, made ready beside the old ones --- */

static bool copy_ready(const struct restore *restore, enum db_file file, struct error *err)
{
    char *source = alloc_printf("%s/%s", restore->from, db_file_names[file]);
    char *target = alloc_printf("%s/%s", restore->partial, db_file_names[file]);
    (void)unlink(target); /* of one that was cut off */
    bool ok = access(source, F_OK) == 0 ||
              fail(err, NOT_FOUND,
                   "%s is not there: FROM is a folder that `trainyard db backup`"
                   " made",
                   source);
    struct db_conn *conn = ok ? db_conn_open(source, false, err) : NULL;
    ok = conn && db_pages_check(conn, err) && db_copy(conn, target, err);
    db_conn_close(conn);
    if (ok) {
        conn = db_conn_open(target, true, err);
        ok = conn && db_migrate(conn, db_migrations(file), err);
        db_conn_close(conn);
    }
    free(source);
    free(target);
    return ok;
}

/* The newest epoch that the present files know of; 0 when they cannot be read. */
static int64_t present_epoch(const char *folder)
{
    struct error err;
    int64_t epoch = 0;
    char *path = alloc_printf("%s/%s", folder, db_file_names[DB_CONTROL]);
    struct db_conn *conn = access(path, F_OK) == 0 ? db_conn_open(path, false, &err) : NULL;
    if (conn && !db_epoch_read(conn, &epoch, &err))
        epoch = 0;
    db_conn_close(conn);
    free(path);
    return epoch;
}

/* How often the folder was restored: known even when its database cannot be read. */
static int64_t generation_read(const char *folder)
{
    long long generation = 0;
    char *path = alloc_printf("%s/generation", folder);
    FILE *file = fopen(path, "re");
    if (file && (fscanf(file, "%lld", &generation) != 1 || generation < 0 ||
                 generation > GENERATIONS_MAX))
        generation = 0;
    if (file)
        fclose(file);
    free(path);
    return generation;
}

static bool generation_write(const char *folder, int64_t generation, struct error *err)
{
    char *path = alloc_printf("%s/generation", folder);
    FILE *file = fopen(path, "we");
    bool ok = file && fprintf(file, "%lld\n", (long long)generation) > 0;
    ok = file && fflush(file) == 0 && fsync(fileno(file)) == 0 && ok;
    if (file)
        ok = fclose(file) == 0 && ok;
    if (!ok)
        error_errno(err, errno == ENOSPC ? EXHAUSTED : DENIED, "cannot write %s", path);
    free(path);
    return ok;
}

/* Counts what is there and puts the epochs to come above all that were given. */
static bool epochs_raise(const struct restore *restore, struct error *err)
{
    struct db_restored *restored = restore->restored;
    char *path = alloc_printf("%s/%s", restore->partial, db_file_names[DB_CONTROL]);
    struct db_conn *conn = db_conn_open(path, true, err);
    free(path);
    int64_t given, present = present_epoch(restore->folder);
    bool ok = conn && db_epoch_read(conn, &given, err) &&
              db_number(conn, err, &restored->jobs, 0, "SELECT count(*) FROM jobs", "") &&
              db_number(conn, err, &restored->alive, 0,
                        "SELECT count(*) FROM jobs WHERE state < 5", "");
    if (ok) {
        int64_t generation = generation_read(restore->folder) + 1;
        while (generation << DB_GENERATION_BITS <= given ||
               generation << DB_GENERATION_BITS <= present)
            generation++;
        restored->epoch = generation << DB_GENERATION_BITS;
        struct db_event event = {.wall_us = (int64_t)clock_wall_us(),
                                 .kind = "server.restored",
                                 .state = -1,
                                 .state_from = -1,
                                 .role = "",
                                 .reason = "",
                                 .text = restore->from};
        ok = db_script(conn, "BEGIN IMMEDIATE", err) &&
             db_epoch_write(conn, restored->epoch, err) && db_events_add(conn, &event, err) &&
             db_script(conn, "COMMIT", err) &&
             generation_write(restore->folder, generation, err);
    }
    db_conn_close(conn);
    return ok;
}

/* --- the change --- */

/* Folders of jobs that the backup does not know: a new job of that number must not find them.
 */
static bool jobs_aside(const struct restore *restore, struct error *err)
{
    char *control = alloc_printf("%s/%s", restore->partial, db_file_names[DB_CONTROL]);
    char *jobs = alloc_printf("%s/jobs", restore->folder);
    char *aside = alloc_printf("%s/jobs", restore->restored->aside);
    struct db_conn *conn = db_conn_open(control, false, err);
    int64_t newest;
    bool ok = conn && db_number(conn, err, &newest, 0, "SELECT max(number) FROM jobs", "");
    db_conn_close(conn);
    DIR *dir = ok ? opendir(jobs) : NULL;
    for (struct dirent *entry; dir && ok && (entry = readdir(dir));) {
        char *end;
        long long number = strtoll(entry->d_name, &end, 10);
        if (*end || number <= newest)
            continue;
        char *from = alloc_printf("%s/%s", jobs, entry->d_name);
        char *to = alloc_printf("%s/%s", aside, entry->d_name);
        ok = db_folder_make(aside, err) && move(from, to, err);
        restore->restored->set_aside += ok;
        free(from);
        free(to);
    }
    if (dir)
        closedir(dir);
    free(control);
    free(jobs);
    free(aside);
    return ok;
}

/*
 * The old file is linked aside and the new one renamed over it, so that the name never is
 * without a file.  What the log beside it holds goes into the old file first; a file that is
 * too damaged for that keeps its log with it.
 */
static bool change_file(const struct restore *restore, enum db_file file, struct error *err)
{
    static const char *const endings[] = {"", "-wal", "-shm"};
    struct error ignored;
    char *present = alloc_printf("%s/%s", restore->folder, db_file_names[file]);
    char *ready = alloc_printf("%s/%s", restore->partial, db_file_names[file]);
    if (access(present, F_OK) == 0)
        db_conn_close(db_conn_open(present, true, &ignored));
    bool ok = true;
    for (int i = 0; ok && i < ARRAY_LEN(endings); i++) {
        char *old = alloc_printf("%s%s", present, endings[i]);
        char *aside =
            alloc_printf("%s/%s%s", restore->restored->aside, db_file_names[file], endings[i]);
        ok = link(old, aside) == 0 || errno == ENOENT ||
             error_errno(err, DENIED, "cannot link %s to %s", old, aside);
        if (ok && i > 0)
            (void)unlink(old);
        free(old);
        free(aside);
    }
    ok = ok && move(ready, present, err);
    free(present);
    free(ready);
    return ok;
}

static void aside_name(const struct restore *restore)
{
    char when[32];
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &utc);
    snprintf(restore->restored->aside, sizeof(restore->restored->aside), "%s/before-restore-%s",
             restore->folder, when);
}

static bool restore_locked(const struct restore *restore, struct error *err)
{
    if (!db_folder_make(restore->partial, err) || !copy_ready(restore, DB_METRICS, err) ||
        !copy_ready(restore, DB_CONTROL, err) || !epochs_raise(restore, err) ||
        !db_folder_sync(restore->partial, err))
        return false;
    aside_name(restore);
    if (!db_folder_make(restore->restored->aside, err) || !jobs_aside(restore, err) ||
        !change_file(restore, DB_METRICS, err) || !change_file(restore, DB_CONTROL, err))
        return false;
    (void)rmdir(restore->partial);
    (void)rmdir(restore->restored->aside); /* empty when nothing was there */
    return db_folder_sync(restore->folder, err);
}

bool db_restore(const char *from, const char *folder, struct db_restored *restored,
                struct error *err)
{
    *restored = (struct db_restored){0};
    if (strlen(folder) > sizeof(restored->aside) - 64)
        return fail(err, INVALID, "%s: a folder's name has at most %zu bytes", folder,
                    sizeof(restored->aside) - 64);
    if (!db_folder_make(folder, err))
        return false;
    int lock = db_folder_lock(folder, err);
    if (lock < 0)
        return false;
    struct restore restore = {folder, from, alloc_printf("%s/restore.partial", folder),
                              restored};
    bool ok = restore_locked(&restore, err);
    free(restore.partial);
    close(lock);
    return ok;
}
