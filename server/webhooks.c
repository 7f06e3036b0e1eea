/* webhooks.c - the thread that makes and sends deliveries. */

#include <pthread.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "db/webhooks.h"
#include "server/delivery.h"
#include "server/feed.h"
#include "server/webhooks.h"

#define LOOK_MS 30000        /* it looks that often though nothing woke it */
#define PAUSE_MS 10000       /* after the database failed */
#define SEQ_BEHIND_MAX 10000 /* events between what is on disk as looked at, and what is */

struct webhooks {
    struct db *db;
    struct feed *feed;
    bool anywhere;
    CURLM *multi;
    struct feed_watcher watcher;
    atomic_bool stopping;
    atomic_bool asked; /* to look whether something is due */
    pthread_t thread;
    /* The thread's own. */
    uint64_t look_us; /* monotonic: something may be due then */
    int64_t seq;      /* events up to this one have their deliveries */
    struct delivery *sending[WEBHOOKS_PARALLEL_MAX];
    int sending_count;
    uint64_t pause_until_us; /* monotonic */
};

int webhooks_backoff_s(int tries)
{
    static const int seconds[WEBHOOKS_TRIES_MAX - 1] = {5, 30, 120, 600, 1800, 7200, 21600};
    return tries >= 1 && tries < WEBHOOKS_TRIES_MAX ? seconds[tries - 1] : 0;
}

bool webhooks_anywhere(const struct webhooks *webhooks)
{
    return webhooks->anywhere;
}

/* --- from events to deliveries --- */

/* What is still to be looked at, and how many deliveries it makes. */
static bool find_wanted(struct webhooks *webhooks, int64_t upto_seq, int64_t *stored_seq,
                        int64_t *count, struct error *err)
{
    struct db_conn *conn = db_read(webhooks->db, DB_CONTROL, err);
    *count = 0;
    bool ok = conn && db_deliveries_seq(conn, stored_seq, err);
    if (ok && webhooks->seq < 0) /* the first time */
        webhooks->seq = *stored_seq < upto_seq ? *stored_seq : upto_seq;
    if (ok && *stored_seq < upto_seq)
        ok = db_deliveries_wanted(conn, webhooks->seq, upto_seq, count, err);
    db_read_done(webhooks->db, conn);
    return ok;
}

static bool queue(struct webhooks *webhooks, struct error *err)
{
    int64_t upto_seq = feed_seq(webhooks->feed, FEED_EVENTS, 0);
    int64_t stored_seq, count;
    if (upto_seq <= webhooks->seq)
        return true;
    if (!find_wanted(webhooks, upto_seq, &stored_seq, &count, err))
        return false;
    bool behind = stored_seq != INT64_MAX && upto_seq - stored_seq > SEQ_BEHIND_MAX;
    if ((count > 0 || behind) &&
        !db_deliveries_queue(webhooks->db, webhooks->seq, upto_seq, err))
        return false;
    if (count > 0)
        atomic_store(&webhooks->asked, true);
    webhooks->seq = upto_seq;
    return true;
}

/* --- sending --- */

/* Writes down what came of a try. */
static bool settle(struct webhooks *webhooks, const struct db_delivery *tried, int status,
                   const char *problem, struct error *err)
{
    struct db_delivery row = *tried;
    row.tries++;
    row.tried_us = (int64_t)clock_wall_us();
    row.status = status;
    row.error = problem;
    int backoff_s = *problem ? webhooks_backoff_s(row.tries) : 0;
    row.next_us = backoff_s ? row.tried_us + backoff_s * INT64_C(1000000) : 0;
    return db_deliveries_tried(webhooks->db, &row, err);
}

static bool is_sending(const struct webhooks *webhooks, int64_t webhook_id)
{
    for (int i = 0; i < webhooks->sending_count; i++)
        if (delivery_row(webhooks->sending[i])->webhook_id == webhook_id)
            return true;
    return false;
}

/* Begins a try; one that cannot be made has failed. */
static bool begin(struct webhooks *webhooks, struct db_conn *conn, struct arena *arena,
                  const struct db_delivery *row, struct error *err)
{
    struct db_webhook webhook;
    struct error why;
    const char *secret;
    char *body = NULL;
    if (!db_webhooks_find(conn, row->webhook_id, arena, &webhook, &why) ||
        !db_webhooks_secret(webhooks->db, conn, row->webhook_id, arena, &secret, &why) ||
        !(body = delivery_body(conn, row, &webhook, &why)))
        return settle(webhooks, row, 0, why.text, err);
    struct delivery *delivery = delivery_new(row, &webhook, secret, body, webhooks->anywhere);
    CURLMcode code = curl_multi_add_handle(webhooks->multi, delivery_curl(delivery));
    assert(code == CURLM_OK);
    (void)code;
    webhooks->sending[webhooks->sending_count++] = delivery;
    return true;
}

/* Begins what is due, if it is time to look; `look_us` gets when the next one is. */
static bool begin_due(struct webhooks *webhooks, struct error *err)
{
    struct db_delivery *rows = NULL;
    int count = 0;
    uint64_t now_us = clock_monotonic_us();
    if (!atomic_exchange(&webhooks->asked, false) && now_us < webhooks->look_us)
        return true;
    webhooks->look_us = now_us + LOOK_MS * 1000;
    struct arena *arena = arena_new();
    struct db_conn *conn = db_read(webhooks->db, DB_CONTROL, err);
    bool ok = conn && db_deliveries_next(conn, arena, &rows, &count, err);
    for (int i = 0; ok && i < count; i++) {
        int64_t left_us = rows[i].next_us - (int64_t)clock_wall_us();
        if (is_sending(webhooks, rows[i].webhook_id))
            continue;
        if (left_us > 0) {
            if (left_us < LOOK_MS * 1000)
                webhooks->look_us = now_us + (uint64_t)left_us;
            break;
        }
        if (webhooks->sending_count == WEBHOOKS_PARALLEL_MAX)
            break; /* the first that ends has it looked again */
        ok = begin(webhooks, conn, arena, &rows[i], err);
    }
    db_read_done(webhooks->db, conn);
    arena_free(arena);
    return ok;
}

static void end(struct webhooks *webhooks, struct delivery *delivery)
{
    curl_multi_remove_handle(webhooks->multi, delivery_curl(delivery));
    for (int i = 0; i < webhooks->sending_count; i++) {
        if (webhooks->sending[i] == delivery) {
            webhooks->sending[i] = webhooks->sending[--webhooks->sending_count];
            break;
        }
    }
    delivery_free(delivery);
}

/* Takes the tries that have ended. */
static bool collect(struct webhooks *webhooks, struct error *err)
{
    CURLMsg *message;
    int left;
    bool ok = true;
    while ((message = curl_multi_info_read(webhooks->multi, &left))) {
        char *self = NULL;
        CURLcode code = message->data.result;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &self);
        struct delivery *delivery = (struct delivery *)(void *)self;
        int status;
        const char *problem = delivery_result(delivery, code, &status);
        ok = settle(webhooks, delivery_row(delivery), status, problem, err) && ok;
        end(webhooks, delivery);
        atomic_store(&webhooks->asked, true);
    }
    return ok;
}

/* --- the thread --- */

/* What the database refused is tried again after a while; what was sent may be sent twice. */
static void pause_after(struct webhooks *webhooks, const struct error *err)
{
    char text[400];
    webhooks->pause_until_us = clock_monotonic_us() + PAUSE_MS * 1000;
    log_line(LOG_WARN, "webhooks", "code=%s msg=%s", error_code_name(err->code),
             log_quote(err->text, text, sizeof(text)));
}

/* How long it may sleep: until something is due, or a pause is over. */
static int sleep_ms(struct webhooks *webhooks)
{
    uint64_t now_us = clock_monotonic_us();
    uint64_t until_us = webhooks->pause_until_us > now_us ? webhooks->pause_until_us
                        : atomic_load(&webhooks->asked)   ? now_us
                                                          : webhooks->look_us;
    return until_us > now_us ? (int)((until_us - now_us) / 1000) + 1 : 0;
}

static void *webhooks_main(void *argument)
{
    struct webhooks *webhooks = argument;
    while (!atomic_load(&webhooks->stopping)) {
        struct error err;
        int running;
        if (clock_monotonic_us() >= webhooks->pause_until_us &&
            (!queue(webhooks, &err) || !begin_due(webhooks, &err)))
            pause_after(webhooks, &err);
        curl_multi_perform(webhooks->multi, &running);
        if (!collect(webhooks, &err))
            pause_after(webhooks, &err);
        curl_multi_poll(webhooks->multi, NULL, 0, sleep_ms(webhooks), NULL);
    }
    while (webhooks->sending_count)
        end(webhooks, webhooks->sending[0]); /* it goes on after a restart */
    return NULL;
}

static void on_feed(void *self)
{
    struct webhooks *webhooks = self;
    curl_multi_wakeup(webhooks->multi);
}

void webhooks_wake(struct webhooks *webhooks)
{
    atomic_store(&webhooks->asked, true);
    curl_multi_wakeup(webhooks->multi);
}

struct webhooks *webhooks_start(struct db *db, struct feed *feed, bool anywhere)
{
    struct webhooks *webhooks = alloc_bytes(sizeof(*webhooks));
    webhooks->db = db;
    webhooks->feed = feed;
    webhooks->anywhere = anywhere;
    webhooks->seq = -1;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    webhooks->multi = curl_multi_init();
    assert(webhooks->multi);
    webhooks->watcher = (struct feed_watcher){.wake = on_feed, .self = webhooks};
    feed_watch(feed, &webhooks->watcher);
    int failed = pthread_create(&webhooks->thread, NULL, webhooks_main, webhooks);
    assert(!failed);
    pthread_setname_np(webhooks->thread, "webhooks");
    return webhooks;
}

void webhooks_stop(struct webhooks *webhooks)
{
    if (!webhooks)
        return;
    atomic_store(&webhooks->stopping, true);
    webhooks_wake(webhooks);
    pthread_join(webhooks->thread, NULL);
    feed_unwatch(webhooks->feed, &webhooks->watcher);
    curl_multi_cleanup(webhooks->multi);
    free(webhooks);
}
