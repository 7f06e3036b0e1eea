/* recent.c - a table of few places, by topic, job and where one is. */

#include "server/recent.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"

enum { PLACES = 64, KEPT_BYTES = 64 << 10 };

struct place {
    enum topic_kind kind;
    int64_t job; /* 0: empty */
    int64_t after_seq;
    uint64_t read_us; /* monotonic */
    struct str events;
    struct topic_batch batch;
};

struct recent {
    struct place places[PLACES];
    struct str events; /* of a batch that is not kept */
};

struct recent *recent_new(void)
{
    return alloc_bytes(sizeof(struct recent));
}

void recent_free(struct recent *recent)
{
    if (!recent)
        return;
    for (int i = 0; i < PLACES; i++)
        str_release(&recent->places[i].events);
    str_release(&recent->events);
    free(recent);
}

static struct place *place_of(struct recent *recent, const struct topic *topic,
                              int64_t after_seq)
{
    uint64_t mixed =
        (uint64_t)topic->job * 31 + (uint64_t)after_seq * 7 + (uint64_t)topic->kind;
    return &recent->places[mixed % PLACES];
}

static bool is_there(const struct place *place, const struct topic *topic, int64_t after_seq,
                     uint64_t now_us)
{
    return place->job == topic->job && place->kind == topic->kind &&
           place->after_seq == after_seq && now_us - place->read_us < RECENT_US;
}

bool recent_read(struct recent *recent, struct db *db, struct feed *feed,
                 const struct topic *topic, int64_t after_seq, const struct str **events,
                 struct topic_batch *batch, struct error *err)
{
    uint64_t now_us = clock_monotonic_us();
    struct place *place = place_of(recent, topic, after_seq);
    if (topic->job && is_there(place, topic, after_seq, now_us)) {
        *events = &place->events;
        *batch = place->batch;
        return true;
    }
    *events = &recent->events;
    str_clear(&recent->events);
    if (!topic_read(db, feed, topic, after_seq, ",", &recent->events, batch, err))
        return false;
    /* What has nothing new is asked again as soon as there may be. */
    if (!topic->job || batch->gap || !batch->events_count || recent->events.size > KEPT_BYTES)
        return true;
    struct str old = place->events;
    *place = (struct place){topic->kind, topic->job, after_seq, now_us, recent->events, *batch};
    recent->events = old;
    *events = &place->events;
    return true;
}
