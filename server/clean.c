/* clean.c - what of DIR/files/ may go, and what of old jobs. */

#include <dirent.h>
#include <ftw.h>
#include <pthread.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "db/files.h"
#include "db/trim.h"
#include "server/clean.h"
#include "server/store.h"
#include "server/upload.h"

#define PERIOD_S 3600
#define FOLDERS_OPEN 16 /* at a time, when they are removed */
#define HOUR_US (INT64_C(3600) * 1000000)

struct clean {
    struct db *db;
    const char *folder;
    int64_t keep_days;
    pthread_mutex_t lock; /* guards: woken; stopping, but for reads of it alone */
    pthread_cond_t changed;
    bool woken;
    atomic_bool stopping;
    pthread_t thread;
};

static int compare_hashes(const void *name, const void *hash)
{
    return strcmp(name, *(const char *const *)hash);
}

/* One of DIR/files/00 to ff.  What is not named like a file is left of a broken upload. */
static void clean_folder(const char *folder, int number, const char **named, int named_count,
                         int64_t before_us, struct clean_removed *removed)
{
    char *path = alloc_printf("%s/files/%02x", folder, (unsigned)number);
    DIR *list = opendir(path);
    struct dirent *entry;
    while (list && (entry = readdir(list))) {
        int64_t bytes;
        if (entry->d_name[0] == '.' ||
            bsearch(entry->d_name, named, (size_t)named_count, sizeof(*named), compare_hashes))
            continue;
        if (store_remove_unused(folder, entry->d_name, before_us, &bytes)) {
            removed->files++;
            removed->bytes += bytes;
        }
    }
    if (list)
        closedir(list);
    free(path);
}

bool clean_now(struct db *db, const char *folder, int64_t now_us, struct clean_removed *removed,
               struct error *err)
{
    const char **named = NULL;
    int count = 0;
    struct arena *arena = arena_new();
    *removed = (struct clean_removed){0};
    struct db_conn *conn = db_read(db, DB_CONTROL, err);
    bool ok = conn && db_files_named(conn, now_us - CLEAN_ENDED_DAYS * 24 * HOUR_US, arena,
                                     &named, &count, err);
    db_read_done(db, conn);
    for (int i = 0; i < 256 && ok; i++)
        clean_folder(folder, i, named, count, now_us - CLEAN_UNUSED_HOURS * HOUR_US, removed);
    arena_free(arena);
    removed->uploads = upload_clean(folder, now_us - UPLOAD_IDLE_DAYS * 24 * HOUR_US);
    return ok;
}

/* The next job behind `*job` that is to be trimmed; 0 when there is none. */
static bool next_old(struct db *db, int64_t before_us, const atomic_bool *stopping,
                     int64_t *job, struct error *err)
{
    bool due = false, ok = true;
    struct db_conn *metrics = db_read(db, DB_METRICS, err);
    struct db_conn *control = metrics ? db_read(db, DB_CONTROL, err) : NULL;
    ok = control != NULL;
    while (ok && !due && !(stopping && *stopping)) {
        ok = db_trim_next(metrics, *job, job, err);
        if (!*job)
            break;
        ok = ok && db_trim_due(control, *job, before_us, &due, err);
    }
    db_read_done(db, control);
    db_read_done(db, metrics);
    if (!due)
        *job = 0;
    return ok;
}

bool clean_trim(struct db *db, int64_t now_us, int64_t keep_days, const atomic_bool *stopping,
                int *jobs, struct error *err)
{
    int64_t job = 0, rows;
    char why[120];
    snprintf(why, sizeof(why),
             "its logs, points of metrics and traces were removed, %lld days after it ended",
             (long long)keep_days);
    *jobs = 0;
    if (keep_days <= 0)
        return true;
    for (;;) {
        if (!next_old(db, now_us - keep_days * 24 * HOUR_US, stopping, &job, err))
            return false;
        if (!job)
            return true;
        if (!db_trim_job(db, job, why, &rows, err))
            return false;
        ++*jobs;
    }
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

bool clean_jobs(struct db *db, const char *folder, const atomic_bool *stopping, int *jobs,
                struct error *err)
{
    int64_t job = 0;
    for (*jobs = 0; !(stopping && *stopping); ++*jobs) {
        struct db_conn *conn = db_read(db, DB_CONTROL, err);
        bool ok = conn && db_trim_removed(conn, job, &job, err);
        db_read_done(db, conn);
        if (!ok || !job)
            return ok;
        /* What is no folder of a job's, or cannot be removed, is no reason to keep the rest. */
        char *path = alloc_printf("%s/jobs/%lld", folder, (long long)job);
        (void)nftw(path, remove_one, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS);
        free(path);
        if (!db_trim_all(db, job, err))
            return false;
    }
    return true;
}

static void clean_removed_jobs(struct clean *clean)
{
    struct error err;
    int jobs;
    char text[400];
    if (!clean_jobs(clean->db, clean->folder, &clean->stopping, &jobs, &err))
        log_line(LOG_WARN, "clean", "code=%s msg=%s", error_code_name(err.code),
                 log_quote(err.text, text, sizeof(text)));
    else if (jobs)
        log_line(LOG_INFO, "clean", "jobs=%d msg=\"removed what they left\"", jobs);
}

static void clean_old(struct clean *clean)
{
    struct error err;
    int jobs;
    char text[400];
    if (!clean_trim(clean->db, (int64_t)clock_wall_us(), clean->keep_days, &clean->stopping,
                    &jobs, &err))
        log_line(LOG_WARN, "clean", "code=%s msg=%s", error_code_name(err.code),
                 log_quote(err.text, text, sizeof(text)));
    else if (jobs)
        log_line(LOG_INFO, "clean", "jobs=%d days=%lld msg=\"removed logs and points\"", jobs,
                 (long long)clean->keep_days);
}

static void clean_look(struct clean *clean)
{
    struct error err;
    struct clean_removed removed;
    char text[400];
    if (!clean_now(clean->db, clean->folder, (int64_t)clock_wall_us(), &removed, &err))
        log_line(LOG_WARN, "clean", "code=%s msg=%s", error_code_name(err.code),
                 log_quote(err.text, text, sizeof(text)));
    else if (removed.files)
        log_line(LOG_INFO, "clean", "files=%d bytes=%lld msg=\"removed what no job needs\"",
                 removed.files, (long long)removed.bytes);
    if (removed.uploads)
        log_line(LOG_INFO, "clean", "uploads=%d msg=\"removed, nobody went on for %d days\"",
                 removed.uploads, UPLOAD_IDLE_DAYS);
}

static void *clean_main(void *argument)
{
    struct clean *clean = argument;
    pthread_mutex_lock(&clean->lock);
    while (!clean->stopping) {
        struct timespec until;
        clean->woken = false;
        pthread_mutex_unlock(&clean->lock);
        clean_removed_jobs(clean);
        clean_look(clean);
        clean_old(clean);
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += PERIOD_S;
        pthread_mutex_lock(&clean->lock);
        while (!clean->stopping && !clean->woken &&
               pthread_cond_timedwait(&clean->changed, &clean->lock, &until) == 0) {
        }
    }
    pthread_mutex_unlock(&clean->lock);
    return NULL;
}

struct clean *clean_start(struct db *db, const char *folder, int64_t keep_days)
{
    struct clean *clean = alloc_bytes(sizeof(*clean));
    clean->db = db;
    clean->folder = folder;
    clean->keep_days = keep_days;
    pthread_mutex_init(&clean->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&clean->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    int failed = pthread_create(&clean->thread, NULL, clean_main, clean);
    assert(!failed);
    pthread_setname_np(clean->thread, "clean");
    return clean;
}

void clean_wake(struct clean *clean)
{
    if (!clean)
        return;
    pthread_mutex_lock(&clean->lock);
    clean->woken = true;
    pthread_cond_signal(&clean->changed);
    pthread_mutex_unlock(&clean->lock);
}

void clean_stop(struct clean *clean)
{
    if (!clean)
        return;
    pthread_mutex_lock(&clean->lock);
    clean->stopping = true;
    pthread_cond_signal(&clean->changed);
    pthread_mutex_unlock(&clean->lock);
    pthread_join(clean->thread, NULL);
    pthread_cond_destroy(&clean->changed);
    pthread_mutex_destroy(&clean->lock);
    free(clean);
}
