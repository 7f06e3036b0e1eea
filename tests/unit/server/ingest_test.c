/* ingest_test.c - event files cut anywhere, sent twice, damaged: every record counts once; and
 * what the stream tells of it. */
/* Faults of docs/reliability.md: F22 F32. */

#include <jansson.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/str.h"
#include "db/artifacts.h"
#include "db/jobs.h"
#include "db/logs.h"
#include "db/metrics.h"
#include "db/tokens.h"
#include "proto/agent_pb.h"
#include "proto/tfevent.h"
#include "server/feed.h"
#include "server/ingest.h"
#include "server/recent.h"
#include "server/request.h"
#include "server/stream.h"
#include "server/topic.h"
#include "tests/unit/folder.h"

#define EPOCH 5
#define FILE_NAME "events.out.tfevents.1.trainyard"

struct world {
    struct db *db;
    struct feed *feed;
    struct ingest *ingest;
    struct arena *arena;
    struct recent *recent;
    struct services services;
    int64_t job;
    char job_id[DB_JOB_ID_BYTES];
};

static void world_open(struct world *w)
{
    static int opened;
    char name[16];
    struct error err;
    snprintf(name, sizeof(name), "yard%d", opened++);
    *w = (struct world){.arena = arena_new()};
    CHECK_OK((w->db = db_open(folder_path(name), &err)) != NULL, &err);
    CHECK_OK((w->feed = feed_new(w->db, &err)) != NULL, &err);
    w->ingest = ingest_new(w->db, w->feed, folder_path("yard"));
    w->recent = recent_new();
    w->services = (struct services){.db = w->db, .feed = w->feed};
    static const struct db_need need = {
        .role = "worker", .replicas = 1, .cpu_millis = 1000, .memory_bytes = 0, .gpus = 0};
    struct db_job_new job = {.user_id = DB_USER_ADMIN,
                             .name = "j",
                             .project = "p",
                             .queue = "default",
                             .spec = "{}",
                             .dataset = "",
                             .needs = &need,
                             .needs_count = 1};
    struct db_job_added added;
    CHECK_OK(db_jobs_add(w->db, &job, &added, &err), &err);
    w->job = added.number;
    snprintf(w->job_id, sizeof(w->job_id), "%s", added.id);
    CHECK_OK(db_ship_fence(w->db, w->job, EPOCH, &err), &err);
}

static void world_close(struct world *w)
{
    ingest_free(w->ingest);
    recent_free(w->recent);
    db_close(w->db);
    feed_free(w->feed);
    arena_free(w->arena);
}

static bool ship(struct world *w, const char *file, int64_t offset, const void *data,
                 size_t size, int64_t *cursor, struct error *err)
{
    struct agent_ship_request request = {.task = {w->job, EPOCH, "worker", 0},
                                         .file = file,
                                         .offset = offset,
                                         .data = data,
                                         .data_size = size};
    return ingest_ship(w->ingest, &request, cursor, err);
}

static void make_file(struct str *file, int steps)
{
    static const char run[] = "{\"steps\": 50}";
    tfevent_add_version(file, 1000, "trainyard");
    tfevent_add_session(file, 1000, 0, TFEVENT_START, "");
    tfevent_add_text(file, 1000, 0, "trainyard/run", "trainyard_run", run, strlen(run));
    for (int step = 1; step <= steps; step++) {
        struct tfevent_scalar scalars[] = {{"loss", 1.0f / (float)step}, {"accuracy", 0.5f}};
        tfevent_add_scalars(file, 1000 + step, step, scalars, 2);
    }
    tfevent_add_session(file, 2000, steps, TFEVENT_CHECKPOINT,
                        "/yard/jobs/1/checkpoints/ckpt-50");
}

static int points_of(struct world *w, const char *name, double *sum)
{
    struct error err;
    struct db_series series;
    struct db_point *points;
    int count;
    struct db_conn *conn = db_read(w->db, DB_METRICS, &err);
    CHECK(conn != NULL);
    CHECK_OK(db_metrics_find(conn, w->job, "worker", 0, name, w->arena, &series, &err), &err);
    CHECK_OK(
        db_metrics_points(conn, series.id, 0, INT64_MAX, 1000, w->arena, &points, &count, &err),
        &err);
    *sum = 0;
    for (int i = 0; i < count; i++)
        *sum += points[i].value;
    db_read_done(w->db, conn);
    return count;
}

/* The file in pieces of every size, as an agent sends it: from the cursor on, each piece once.
 */
TEST(a_file_cut_anywhere_is_stored_once)
{
    struct str file = {0};
    make_file(&file, 50);
    for (size_t piece = 1; piece <= file.size + 1; piece += piece < 40 ? 13 : piece) {
        struct world w;
        struct error err;
        world_open(&w);
        int64_t cursor = 0;
        while (cursor < (int64_t)file.size) {
            size_t left = file.size - (size_t)cursor;
            CHECK_OK(ship(&w, FILE_NAME, cursor, file.data + cursor,
                          piece < left ? piece : left, &cursor, &err),
                     &err);
        }
        double sum;
        CHECK_INT(points_of(&w, "loss", &sum), 50);
        CHECK(sum > 4.499 && sum < 4.4993);
        CHECK_INT(points_of(&w, "accuracy", &sum), 50);
        world_close(&w);
    }
    str_release(&file);
}

/* The same bytes again, from the beginning or from the middle, change nothing. */
TEST(pieces_sent_again_change_nothing)
{
    struct world w;
    struct error err;
    struct str file = {0};
    int64_t cursor;
    double sum;
    world_open(&w);
    make_file(&file, 50);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(ship(&w, FILE_NAME, 0, file.data, file.size, &cursor, &err), &err);
        CHECK_INT(cursor, (int64_t)file.size);
    }
    CHECK_OK(ship(&w, FILE_NAME, 57, file.data + 57, 300, &cursor, &err), &err);
    CHECK_INT(cursor, (int64_t)file.size);
    CHECK_INT(points_of(&w, "loss", &sum), 50);
    int64_t newest = feed_seq(w.feed, FEED_REPORTS, w.job);
    CHECK_INT(newest, 1);
    str_release(&file);
    world_close(&w);
}

/* A server that is killed forgets the beginning of a record; it says so, and gets it again. */
TEST(an_unfinished_record_is_asked_for_again_after_a_restart)
{
    struct world w;
    struct error err;
    struct str file = {0};
    int64_t cursor;
    double sum;
    world_open(&w);
    make_file(&file, 50);
    CHECK_OK(ship(&w, FILE_NAME, 0, file.data, file.size - 7, &cursor, &err), &err);
    CHECK_INT(cursor, (int64_t)file.size - 7);
    ingest_free(w.ingest);
    w.ingest = ingest_new(w.db, w.feed, folder_path("yard"));
    CHECK_OK(ship(&w, FILE_NAME, cursor, file.data + cursor, 7, &cursor, &err), &err);
    CHECK(cursor < (int64_t)file.size - 7);
    CHECK_OK(ship(&w, FILE_NAME, cursor, file.data + cursor, file.size - (size_t)cursor,
                  &cursor, &err),
             &err);
    CHECK_INT(cursor, (int64_t)file.size);
    CHECK_INT(points_of(&w, "loss", &sum), 50);
    CHECK_OK(ship(&w, FILE_NAME, 0, NULL, 0, &cursor, &err), &err);
    CHECK_INT(cursor, (int64_t)file.size);
    str_release(&file);
    world_close(&w);
}

static bool ship_of(struct world *w, int64_t epoch, int64_t offset, const struct str *file,
                    size_t size, int64_t *cursor, struct error *err)
{
    struct agent_ship_request request = {.task = {w->job, epoch, "worker", 0},
                                         .file = FILE_NAME,
                                         .offset = offset,
                                         .data = file->data + offset,
                                         .data_size = size};
    return ingest_ship(w->ingest, &request, cursor, err);
}

/* Tasks that were killed within a record do not fill the server's memory for ever. */
TEST(unfinished_records_are_forgotten_in_time)
{
    struct world w;
    struct error err;
    struct str file = {0};
    int64_t first, second, cursor;
    uint64_t now_us = UINT64_C(1000000000);
    world_open(&w);
    make_file(&file, 50);
    clock_freeze(now_us);
    CHECK_OK(ship_of(&w, EPOCH, 0, &file, file.size - 7, &first, &err), &err);
    clock_freeze(now_us += 400000000);
    CHECK_OK(ship_of(&w, EPOCH + 1, 0, &file, file.size - 7, &second, &err), &err);
    CHECK_INT(first, second);
    clock_freeze(now_us += 400000000);
    CHECK_OK(ship_of(&w, EPOCH + 2, 0, &file, file.size - 7, &cursor, &err), &err);
    CHECK_INT(first, cursor);
    /* The oldest is asked for again, the others go on. */
    CHECK_OK(ship_of(&w, EPOCH, first, &file, 7, &first, &err), &err);
    CHECK(first < (int64_t)file.size - 7);
    CHECK_OK(ship_of(&w, EPOCH, first, &file, file.size - (size_t)first, &first, &err), &err);
    CHECK_INT(first, (int64_t)file.size);
    CHECK_OK(ship_of(&w, EPOCH + 1, second, &file, 7, &second, &err), &err);
    CHECK_INT(second, (int64_t)file.size);
    clock_freeze(0);
    str_release(&file);
    world_close(&w);
}

/* What is behind a damaged record cannot be read; what is before it is kept, and shipping goes
 * on. */
TEST(damage_loses_the_rest_of_the_piece_only)
{
    struct world w;
    struct error err;
    struct str file = {0};
    int64_t cursor;
    double sum;
    world_open(&w);
    make_file(&file, 50);
    file.data[file.size / 2] ^= 0x40;
    CHECK_OK(ship(&w, FILE_NAME, 0, file.data, file.size, &cursor, &err), &err);
    CHECK_INT(cursor, (int64_t)file.size);
    int count = points_of(&w, "loss", &sum);
    CHECK(count > 10 && count < 40);
    str_release(&file);
    world_close(&w);
}

TEST(output_becomes_lines)
{
    struct world w;
    struct error err;
    int64_t cursor;
    world_open(&w);
    CHECK_OK(ship(&w, "stdout.log", 0, "one\ntw", 6, &cursor, &err), &err);
    CHECK_OK(ship(&w, "stdout.log", 6, "o\n\xff three\r\nfo", 13, &cursor, &err), &err);
    CHECK_INT(cursor, 19);
    struct topic topic = {.kind = TOPIC_LOGS, .job = w.job, .id = w.job_id};
    struct topic_batch batch;
    struct str events = {0};
    CHECK_OK(topic_read(w.db, w.feed, &topic, 0, "\n", &events, &batch, &err), &err);
    CHECK_INT(batch.events_count, 1);
    json_t *json = json_loads(str_text(&events), 0, NULL);
    json_t *lines = json_object_get(json_object_get(json, "data"), "lines");
    CHECK_INT(json_array_size(lines), 3);
    CHECK_TEXT(json_string_value(json_object_get(json_array_get(lines, 0), "text")), "one");
    CHECK_TEXT(json_string_value(json_object_get(json_array_get(lines, 1), "text")), "two");
    CHECK_TEXT(json_string_value(json_object_get(json_array_get(lines, 2), "text")),
               "\xef\xbf\xbd three");
    json_decref(json);

    /* From the first piece on: the line that began there, whole. */
    str_clear(&events);
    CHECK_OK(topic_read(w.db, w.feed, &topic, 1, "\n", &events, &batch, &err), &err);
    CHECK(strstr(str_text(&events), "\"two\"") && !strstr(str_text(&events), "\"one\""));
    str_release(&events);
    world_close(&w);
}

/* What is kept is what was read: the same text from the same place, and what is new behind it.
 */
TEST(recent_batches_are_those_of_the_database)
{
    struct world w;
    struct error err;
    int64_t cursor;
    world_open(&w);
    CHECK_OK(ship(&w, "stdout.log", 0, "one\n", 4, &cursor, &err), &err);
    struct topic topic = {.kind = TOPIC_LOGS, .job = w.job, .id = w.job_id};
    struct topic_batch first, again, second, direct;
    const struct str *kept, *next;
    struct str events = {0};
    CHECK_OK(recent_read(w.recent, w.db, w.feed, &topic, 0, &kept, &first, &err), &err);
    CHECK_OK(topic_read(w.db, w.feed, &topic, 0, ",", &events, &direct, &err), &err);
    CHECK_TEXT(str_text(kept), str_text(&events));
    CHECK_INT(first.seq, direct.seq);

    /* More comes: who is at the same place gets the same batch, and then what is new. */
    CHECK_OK(ship(&w, "stdout.log", 4, "two\n", 4, &cursor, &err), &err);
    CHECK_OK(recent_read(w.recent, w.db, w.feed, &topic, 0, &kept, &again, &err), &err);
    CHECK_TEXT(str_text(kept), str_text(&events));
    CHECK_INT(again.seq, first.seq);
    CHECK_OK(recent_read(w.recent, w.db, w.feed, &topic, again.seq, &next, &second, &err),
             &err);
    CHECK(strstr(str_text(next), "\"two\"") && !strstr(str_text(next), "\"one\""));

    /* Another topic at the same place, and one who comes later. */
    topic.kind = TOPIC_METRICS;
    CHECK_OK(recent_read(w.recent, w.db, w.feed, &topic, 0, &next, &second, &err), &err);
    CHECK(!strstr(str_text(next), "\"one\""));
    topic.kind = TOPIC_LOGS;
    clock_freeze(clock_monotonic_us() + 2 * RECENT_US);
    CHECK_OK(recent_read(w.recent, w.db, w.feed, &topic, 0, &next, &second, &err), &err);
    CHECK(strstr(str_text(next), "\"two\"") && second.seq > first.seq);
    clock_freeze(0);
    str_release(&events);
    world_close(&w);
}

/* --- a client of the stream --- */

static json_t *next_message(struct stream *stream, uint64_t now_us)
{
    struct str out = {0};
    uint64_t wait_us;
    json_t *json = stream_next(stream, now_us, &out, &wait_us)
                       ? json_loads(str_text(&out), 0, NULL)
                       : NULL;
    str_release(&out);
    return json;
}

static void say(struct stream *stream, const char *format, long long a, long long b)
{
    char text[200];
    snprintf(text, sizeof(text), format, a, b);
    CHECK_INT(stream_receive(stream, text, strlen(text)), 0);
}

static long long seq_of(json_t *message)
{
    return json_integer_value(json_object_get(message, "seq"));
}

static size_t points_in(json_t *message)
{
    return json_array_size(json_object_get(
        json_object_get(json_array_get(json_object_get(message, "events"), 0), "data"),
        "points"));
}

static void expect(json_t *message, const char *op)
{
    CHECK(message != NULL);
    CHECK_TEXT(json_string_value(json_object_get(message, "op")), op);
}

TEST(a_stream_resumes_after_any_number)
{
    struct world w;
    struct error err;
    int64_t cursor = 0;
    world_open(&w);
    struct auth_identity user = {.way = AUTH_BY_TOKEN, .user = "admin", .csrf = ""};
    struct stream *stream = stream_new(&w.services, w.recent, &user);
    json_t *message = next_message(stream, 1);
    expect(message, "hello");
    json_decref(message);
    CHECK(!next_message(stream, 1));

    say(stream, "{\"op\": \"subscribe\", \"id\": 1, \"topic\": \"job.metrics\", \"job\": %lld}",
        w.job, 0);
    message = next_message(stream, 1);
    expect(message, "snapshot");
    CHECK_INT(json_array_size(json_object_get(message, "events")), 0);
    json_decref(message);
    CHECK(!next_message(stream, 1));

    struct str file = {0};
    make_file(&file, 50);
    CHECK_OK(ship(&w, FILE_NAME, 0, file.data, file.size / 2, &cursor, &err), &err);
    message = next_message(stream, 1000000);
    expect(message, "batch");
    size_t first = points_in(message);
    long long seq = seq_of(message);
    CHECK(first > 20 && seq == 1);
    json_decref(message);
    CHECK_OK(ship(&w, FILE_NAME, cursor, file.data + cursor, file.size - (size_t)cursor,
                  &cursor, &err),
             &err);

    /* Within its interval it waits; a second client that comes with the number gets just the
     * rest. */
    CHECK(!next_message(stream, 1000001));
    struct stream *other = stream_new(&w.services, w.recent, &user);
    json_decref(next_message(other, 1));
    say(other,
        "{\"op\": \"subscribe\", \"id\": 9, \"topic\": \"job.metrics\", \"job\": %lld, "
        "\"after_seq\": %lld}",
        w.job, seq);
    message = next_message(other, 1);
    expect(message, "batch");
    CHECK_INT(first + points_in(message), 100);
    CHECK_INT(seq_of(message), 2);
    json_decref(message);

    /* A number that this server never gave is a gap. */
    say(other,
        "{\"op\": \"subscribe\", \"id\": 9, \"topic\": \"job.metrics\", \"job\": %lld, "
        "\"after_seq\": %lld}",
        w.job, 1000);
    message = next_message(other, 1);
    expect(message, "gap");
    CHECK_INT(seq_of(message), 2);
    json_decref(message);
    stream_free(other);
    stream_free(stream);
    str_release(&file);
    world_close(&w);
}

TEST(strangers_and_nonsense_are_shown_out)
{
    struct world w;
    world_open(&w);
    struct auth_identity nobody = {.way = AUTH_BY_NOTHING};
    struct auth_identity user = {.way = AUTH_BY_TOKEN, .user = "admin", .csrf = ""};
    static const char subscribe[] =
        "{\"op\": \"subscribe\", \"id\": 1, \"topic\": \"job.state\"}";
    struct stream *stream = stream_new(&w.services, w.recent, &nobody);
    CHECK(!stream_pending(stream));
    CHECK_INT(stream_receive(stream, subscribe, strlen(subscribe)), STREAM_CLOSE_SIGNED_OUT);
    stream_free(stream);

    static const char *const nonsense[] = {
        "", "x", "[]", "{}", "{\"op\": 1}", "{\"op\": \"ping\", \"op\": \"ping\"}", "\xff"};
    for (int i = 0; i < ARRAY_LEN(nonsense); i++) {
        stream = stream_new(&w.services, w.recent, &user);
        CHECK_INT(stream_receive(stream, nonsense[i], strlen(nonsense[i])),
                  STREAM_CLOSE_POLICY);
        stream_free(stream);
    }
    /* Wrong wishes are answered, and the connection lives on. */
    static const char *const wrong[] = {
        "{\"op\": \"subscribe\", \"id\": 1, \"topic\": \"x\"}",
        "{\"op\": \"subscribe\", \"id\": 1, \"topic\": \"job.metrics\"}",
        "{\"op\": \"subscribe\", \"id\": 1, \"topic\": \"job.metrics\", \"job\": \"nope\"}",
        "{\"op\": \"subscribe\", \"id\": 1, \"topic\": \"job.state\", \"job\": [1]}",
        "{\"op\": \"subscribe\", \"id\": 1, \"topic\": \"job.state\", \"max_hz\": 0}",
        "{\"op\": \"dance\"}",
    };
    stream = stream_new(&w.services, w.recent, &user);
    json_decref(next_message(stream, 1));
    for (int i = 0; i < ARRAY_LEN(wrong); i++) {
        CHECK_INT(stream_receive(stream, wrong[i], strlen(wrong[i])), 0);
        json_t *message = next_message(stream, 1);
        expect(message, "error");
        json_decref(message);
    }
    /* One who only asks and never reads is shown out too. */
    int code = 0;
    for (int i = 0; i < 100 && !code; i++)
        code = stream_receive(stream, "{\"op\": \"ping\"}", 14);
    CHECK_INT(code, STREAM_CLOSE_POLICY);
    stream_free(stream);
    world_close(&w);
}
