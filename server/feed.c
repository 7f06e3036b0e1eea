/* feed.c - the newest numbers, and the list of watchers. */

#include <pthread.h>

#include "base/alloc.h"
#include "db/db.h"
#include "db/events.h"
#include "db/ship.h"
#include "server/feed.h"

#define FEED_JOBS 1024 /* power of two */

/*
 * Numbers per job are kept in a table by the job's number modulo its size: two jobs that share
 * a place are at worst told of each other's news.
 */
struct feed {
    struct db *db;
    pthread_mutex_t lock; /* guards all below */
    int64_t newest[FEED_LINES];
    int64_t by_job[FEED_LINES][FEED_JOBS];
    struct feed_watcher *watchers;
    bool closed;
};

static void on_commit(void *self, int64_t seq)
{
    feed_note(self, FEED_EVENTS, 0, seq);
}

static bool read_newest(struct feed *feed, struct error *err)
{
    int64_t oldest;
    struct db_conn *conn = db_read(feed->db, DB_CONTROL, err);
    if (!conn)
        return false;
    bool ok = db_events_range(conn, &oldest, &feed->newest[FEED_EVENTS], err);
    db_read_done(feed->db, conn);
    if (!ok)
        return false;
    conn = db_read(feed->db, DB_METRICS, err);
    if (!conn)
        return false;
    ok = db_ship_seq(conn, &feed->newest[FEED_REPORTS], err);
    db_read_done(feed->db, conn);
    return ok;
}

struct feed *feed_new(struct db *db, struct error *err)
{
    struct feed *feed = alloc_bytes(sizeof(*feed));
    feed->db = db;
    pthread_mutex_init(&feed->lock, NULL);
    if (!read_newest(feed, err)) {
        feed_free(feed);
        return NULL;
    }
    for (int line = 0; line < FEED_LINES; line++)
        for (int i = 0; i < FEED_JOBS; i++)
            feed->by_job[line][i] = feed->newest[line];
    db_watch(db, on_commit, feed);
    return feed;
}

void feed_free(struct feed *feed)
{
    if (!feed)
        return;
    assert(!feed->watchers);
    pthread_mutex_destroy(&feed->lock);
    free(feed);
}

static void raise_to(int64_t *value, int64_t seq)
{
    if (*value < seq)
        *value = seq;
}

static void wake_locked(struct feed *feed)
{
    for (struct feed_watcher *w = feed->watchers; w; w = w->next)
        w->wake(w->self);
}

void feed_note(struct feed *feed, enum feed_line line, int64_t job, int64_t seq)
{
    pthread_mutex_lock(&feed->lock);
    raise_to(&feed->newest[line], seq);
    if (job)
        raise_to(&feed->by_job[line][job % FEED_JOBS], seq);
    else
        for (int i = 0; i < FEED_JOBS; i++)
            raise_to(&feed->by_job[line][i], seq);
    wake_locked(feed);
    pthread_mutex_unlock(&feed->lock);
}

void feed_tick(struct feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    wake_locked(feed);
    pthread_mutex_unlock(&feed->lock);
}

void feed_close(struct feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    feed->closed = true;
    wake_locked(feed);
    pthread_mutex_unlock(&feed->lock);
}

bool feed_closed(struct feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    bool closed = feed->closed;
    pthread_mutex_unlock(&feed->lock);
    return closed;
}

void feed_watch(struct feed *feed, struct feed_watcher *watcher)
{
    pthread_mutex_lock(&feed->lock);
    watcher->next = feed->watchers;
    watcher->link = &feed->watchers;
    if (watcher->next)
        watcher->next->link = &watcher->next;
    feed->watchers = watcher;
    pthread_mutex_unlock(&feed->lock);
}

void feed_unwatch(struct feed *feed, struct feed_watcher *watcher)
{
    pthread_mutex_lock(&feed->lock);
    *watcher->link = watcher->next;
    if (watcher->next)
        watcher->next->link = watcher->link;
    pthread_mutex_unlock(&feed->lock);
}

int64_t feed_seq(struct feed *feed, enum feed_line line, int64_t job)
{
    pthread_mutex_lock(&feed->lock);
    int64_t seq = job ? feed->by_job[line][job % FEED_JOBS] : feed->newest[line];
    pthread_mutex_unlock(&feed->lock);
    return seq;
}
