/* ingest.c - pieces of event files and logs. */

#include <inttypes.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/str.h"
#include "db/events.h"
#include "db/jobs.h"
#include "db/ship.h"
#include "proto/agent_pb.h"
#include "proto/record.h"
#include "proto/tfevent.h"
#include "server/checkpoint_store.h"
#include "server/feed.h"
#include "server/ingest.h"
#include "server/partials.h"
#include "server/store.h"

#define NOTICES_MAX 8 /* of one piece; more would be noise */
#define NOTICE_BYTES_MAX 2000

struct ingest {
    struct db *db;
    struct feed *feed;
    const char *folder;
    struct partials *partials;
};

/* What one piece brings, growing as its records are read. */
struct harvest {
    struct arena *arena;
    struct db_ship ship;
    const char *prefix; /* of names of series: the folder of the event file and '/'; "" */
    struct db_point *points;
    int points_capacity;
    struct db_artifact_new *artifacts;
    int artifacts_capacity;
    struct db_checkpoint *checkpoints;
    int checkpoints_capacity;
    const char *notices[NOTICES_MAX];
    int notices_count;
};

struct ingest *ingest_new(struct db *db, struct feed *feed, const char *folder)
{
    struct ingest *ingest = alloc_bytes(sizeof(*ingest));
    ingest->db = db;
    ingest->feed = feed;
    ingest->folder = folder;
    ingest->partials = partials_new();
    return ingest;
}

void ingest_free(struct ingest *ingest)
{
    if (!ingest)
        return;
    partials_free(ingest->partials);
    free(ingest);
}

/* --- one record --- */

static int64_t wall_us(const struct tfevent *event)
{
    return event->wall_time > 0 && event->wall_time < 1e11 ? (int64_t)(event->wall_time * 1e6)
                                                           : 0;
}

static void add_point(struct harvest *harvest, const struct tfevent *event,
                      const struct tfevent_value *value)
{
    harvest->points = alloc_grow(harvest->points, harvest->ship.points_count,
                                 &harvest->points_capacity, sizeof(*harvest->points));
    harvest->points[harvest->ship.points_count++] = (struct db_point){
        harvest->prefix[0] ? arena_printf(harvest->arena, "%s%s", harvest->prefix, value->tag)
                           : value->tag,
        event->step, wall_us(event), value->scalar};
}

static void add_artifact(struct harvest *harvest, const char *kind, const char *name,
                         int64_t step, const void *bytes, size_t size)
{
    harvest->artifacts = alloc_grow(harvest->artifacts, harvest->ship.artifacts_count,
                                    &harvest->artifacts_capacity, sizeof(*harvest->artifacts));
    harvest->artifacts[harvest->ship.artifacts_count++] =
        (struct db_artifact_new){kind, name, step, bytes, size};
}

/* What our own tasks say of their attempt; other writers mean other things by it. */
static void add_session(struct harvest *harvest, const struct tfevent *event)
{
    if (strchr(harvest->ship.file, '/'))
        return;
    if (event->status == TFEVENT_START) {
        harvest->ship.starts = true;
        harvest->ship.start_step = event->step;
    } else if (event->status == TFEVENT_CHECKPOINT) {
        harvest->checkpoints =
            alloc_grow(harvest->checkpoints, harvest->ship.checkpoints_count,
                       &harvest->checkpoints_capacity, sizeof(*harvest->checkpoints));
        harvest->checkpoints[harvest->ship.checkpoints_count++] = (struct db_checkpoint){
            event->step, harvest->ship.epoch, wall_us(event), event->text};
    }
}

/* What our own tasks want people to know. */
static void add_notice(struct harvest *harvest, const struct tfevent_value *value)
{
    int size = value->size < NOTICE_BYTES_MAX ? (int)value->size : NOTICE_BYTES_MAX;
    for (int cut = 0; cut < 3 && !str_is_utf8(value->bytes, (size_t)size) && size; cut++)
        size--; /* in the middle of a letter */
    if (!str_is_utf8(value->bytes, (size_t)size))
        return;
    if (harvest->notices_count < NOTICES_MAX && !strchr(harvest->ship.file, '/'))
        harvest->notices[harvest->notices_count++] =
            arena_printf(harvest->arena, "%.*s", size, (const char *)value->bytes);
}

static void add_values(struct harvest *harvest, const struct tfevent *event)
{
    for (int i = 0; i < event->values_count; i++) {
        const struct tfevent_value *value = &event->values[i];
        if (value->is_scalar)
            add_point(harvest, event, value);
        else if (value->bytes && strcmp(value->tag, "trainyard/run") == 0)
            add_artifact(harvest, "run", "", event->step, value->bytes, value->size);
        else if (value->bytes && strcmp(value->tag, "trainyard/placement") == 0)
            add_artifact(harvest, "placement", "", event->step, value->bytes, value->size);
        else if (value->bytes && strcmp(value->tag, "trainyard/times") == 0)
            add_artifact(harvest, "times", "", event->step, value->bytes, value->size);
        else if (value->bytes && strcmp(value->tag, "trainyard/notice") == 0)
            add_notice(harvest, value);
    }
}

static void add_event(struct harvest *harvest, const struct tfevent *event)
{
    switch (event->kind) {
    case TFEVENT_SUMMARY:
        add_values(harvest, event);
        break;
    case TFEVENT_GRAPH:
        add_artifact(harvest, "graph", "", event->step, event->bytes, event->size);
        break;
    case TFEVENT_RUN_METADATA:
        add_artifact(harvest, "trace", event->text, event->step, event->bytes, event->size);
        break;
    case TFEVENT_SESSION:
        add_session(harvest, event);
        break;
    case TFEVENT_EMPTY:
    case TFEVENT_VERSION:
    case TFEVENT_LOG:
    case TFEVENT_META_GRAPH:
        break;
    }
}

/*
 * Reads the whole records at the front of `bytes`; returns how many bytes they are.  A damaged
 * record cannot be stepped over, since its length is not to be trusted: the rest counts as
 * read.
 */
static size_t read_records(struct harvest *harvest, const char *bytes, size_t size,
                           int64_t offset)
{
    size_t at = 0;
    while (at < size) {
        const void *data;
        size_t data_size;
        size_t used;
        struct error err;
        char text[400];
        enum record_result result = record_parse(bytes + at, size - at, offset + (int64_t)at,
                                                 &data, &data_size, &used, &err);
        if (result == RECORD_MORE)
            break;
        if (result == RECORD_BAD) {
            log_line(LOG_WARN, "ingest", "job=%" PRId64 " file=%s msg=%s", harvest->ship.job,
                     harvest->ship.file, log_quote(err.text, text, sizeof(text)));
            return size;
        }
        struct tfevent event;
        if (tfevent_parse(data, data_size, harvest->arena, &event, &err))
            add_event(harvest, &event);
        else
            log_line(LOG_WARN, "ingest", "job=%" PRId64 " file=%s offset=%" PRId64 " msg=%s",
                     harvest->ship.job, harvest->ship.file, offset + (int64_t)at,
                     log_quote(err.text, text, sizeof(text)));
        at += used;
    }
    return at;
}

/* --- a piece --- */

/* In the other database, so at most once: the task's output has them in any case. */
static void tell_notices(struct ingest *ingest, const struct harvest *harvest)
{
    struct error err;
    char text[700];
    for (int i = 0; i < harvest->notices_count; i++) {
        if (!db_events_notice(ingest->db, harvest->ship.job, harvest->ship.role,
                              harvest->ship.index, harvest->notices[i],
                              (int64_t)clock_wall_us(), &err))
            log_line(LOG_WARN, "ingest", "job=%" PRId64 " what=notice msg=%s",
                     harvest->ship.job, log_quote(err.text, text, sizeof(text)));
    }
}

static bool store(struct ingest *ingest, struct harvest *harvest, int64_t *cursor,
                  struct error *err)
{
    struct db_shipped shipped;
    harvest->ship.points = harvest->points;
    harvest->ship.artifacts = harvest->artifacts;
    harvest->ship.checkpoints = harvest->checkpoints;
    if (!db_ship(ingest->db, &harvest->ship, &shipped, err))
        return false;
    *cursor = shipped.cursor;
    if (shipped.seq)
        feed_note(ingest->feed, FEED_REPORTS, harvest->ship.job, shipped.seq);
    if (shipped.stored && !shipped.fenced)
        tell_notices(ingest, harvest);
    return true;
}

static bool stored_cursor(struct ingest *ingest, const struct agent_ship_request *ship,
                          int64_t *cursor, struct error *err)
{
    struct db_conn *conn = db_read(ingest->db, DB_METRICS, err);
    if (!conn)
        return false;
    bool ok = db_ship_cursor(conn, ship->task.attempt_epoch, ship->task.role, ship->task.index,
                             ship->file, cursor, err);
    db_read_done(ingest->db, conn);
    return ok;
}

static bool ship_events(struct ingest *ingest, const struct agent_ship_request *ship,
                        struct harvest *harvest, int64_t *cursor, struct error *err)
{
    char *key = alloc_printf("%" PRId64 "/%s/%d/%s", ship->task.attempt_epoch, ship->task.role,
                             ship->task.index, ship->file);
    struct piece piece = {ship->offset, ship->data, ship->data_size};
    if (!partials_continue(ingest->partials, key, &piece, clock_monotonic_us())) {
        /* From anywhere else than where the stored bytes end, records cannot be told apart. */
        bool found = stored_cursor(ingest, ship, cursor, err);
        if (!found || *cursor != ship->offset) {
            free(key);
            return found;
        }
    }
    size_t used = read_records(harvest, piece.bytes, piece.size, piece.offset);
    harvest->ship.offset = piece.offset;
    harvest->ship.end = piece.offset + (int64_t)used;
    bool ok =
        used ? store(ingest, harvest, cursor, err) : stored_cursor(ingest, ship, cursor, err);
    if (ok)
        ok = partials_keep(ingest->partials, key, &piece, used, cursor, clock_monotonic_us(),
                           err);
    else
        partials_drop(ingest->partials, key);
    free(key);
    return ok;
}

/* The bytes go to their file first: a cursor never says more than is there. */
static bool ship_artifact(struct ingest *ingest, const struct agent_ship_request *ship,
                          struct harvest *harvest, int64_t *cursor, struct error *err)
{
    if (!stored_cursor(ingest, ship, cursor, err))
        return false;
    if (*cursor != ship->offset) /* said before, or from too far on */
        return true;
    return store_ship(ingest->folder, ship, err) &&
           (!ship->data_size || store(ingest, harvest, cursor, err));
}

static const char *log_name(const char *file)
{
    if (strcmp(file, "stdout.log") == 0)
        return "stdout";
    return strcmp(file, "stderr.log") == 0 ? "stderr" : NULL;
}

/* Of a program's event files, "out/train/events..." has series like "train/loss"; of the
 * agent's samples, "hw/events..." like "hw/cpu". */
static const char *series_prefix(const char *file, struct arena *arena)
{
    static const char out[] = "out/";
    if (strncmp(file, out, strlen(out)) == 0)
        file += strlen(out);
    else if (strncmp(file, DB_HARDWARE, strlen(DB_HARDWARE)) != 0)
        return "";
    const char *slash = strrchr(file, '/');
    return slash ? arena_text_n(arena, file, (size_t)(slash + 1 - file)) : "";
}

/*
 * On a full disk only the rest of what is being stopped is taken, by what the databases keep
 * for that: it is little, and the job has not ended before.
 */
static bool has_room(const struct ingest *ingest, int64_t number, struct error *err)
{
    if (db_room(ingest->db, err))
        return true;
    struct error ignored;
    struct db_job job;
    struct arena *arena = arena_new();
    struct db_conn *conn = db_read(ingest->db, DB_CONTROL, &ignored);
    bool stops = conn && db_jobs_find(conn, number, arena, &job, &ignored) &&
                 job.state != JOB_STARTING && job.state != JOB_RUNNING;
    db_read_done(ingest->db, conn);
    arena_free(arena);
    return stops;
}

bool ingest_ship(void *self, const struct agent_ship_request *ship, int64_t *cursor,
                 struct error *err)
{
    struct ingest *ingest = self;
    bool artifact = store_is_artifact(ship->file);
    if (checkpoint_store_is(ship->file))
        return checkpoint_store_ship(ingest->folder, ship, cursor, err);
    if (!ship->data_size && !(artifact && ship->last))
        return stored_cursor(ingest, ship, cursor, err);
    if (!has_room(ingest, ship->task.job_id, err))
        return false;
    failpoint("server.on_ship");
    struct arena *arena = arena_new();
    struct harvest harvest = {
        .arena = arena,
        .prefix = series_prefix(ship->file, arena),
        .ship = {.job = ship->task.job_id,
                 .epoch = ship->task.attempt_epoch,
                 .role = ship->task.role,
                 .index = ship->task.index,
                 .file = ship->file,
                 .offset = ship->offset,
                 .end = ship->offset + (int64_t)ship->data_size,
                 .log = log_name(ship->file)},
    };
    bool ok;
    if (harvest.ship.log) {
        harvest.ship.log_bytes = ship->data;
        harvest.ship.log_size = ship->data_size;
        ok = store(ingest, &harvest, cursor, err);
    } else if (artifact) {
        ok = ship_artifact(ingest, ship, &harvest, cursor, err);
    } else {
        ok = ship_events(ingest, ship, &harvest, cursor, err);
    }
    failpoint("server.after_ship");
    free(harvest.points);
    free(harvest.artifacts);
    free(harvest.checkpoints);
    arena_free(arena);
    return ok;
}
