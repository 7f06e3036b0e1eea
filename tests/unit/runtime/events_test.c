/* events_test.c - what is added comes back from the file, in order; writing fails with words.
 */

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/str.h"
#include "proto/record.h"
#include "runtime/events.h"
#include "tests/unit/test.h"

static void new_folder(char folder[64])
{
    snprintf(folder, 64, "/tmp/events_test.XXXXXX");
    CHECK(mkdtemp(folder));
}

static size_t read_all(const char *path, char *out, size_t out_size)
{
    FILE *file = fopen(path, "r");
    CHECK(file);
    size_t size = fread(out, 1, out_size, file);
    fclose(file);
    return size;
}

TEST(events_come_back_in_order)
{
    char folder[64];
    new_folder(folder);
    struct error err;
    struct events *events = events_open(folder, &err);
    CHECK_OK(events, &err);
    char *path = alloc_text(events_path(events));
    events_session(events, 7, TFEVENT_START, "");
    events_run(events, 7, "{\"steps\": 9}");
    events_graph(events, "graph", 5);
    events_placement(events, 7, "[]");
    events_scalars(events, 8, (struct tfevent_scalar[]){{"loss", 0.5f}, {"accuracy", 1}}, 2);
    events_trace(events, 8, "stats", 5);
    events_session(events, 8, TFEVENT_CHECKPOINT, "model.ckpt-8");
    events_session(events, 9, TFEVENT_STOP, "");
    CHECK_OK(events_close(events, &err), &err);

    static const enum tfevent_kind kinds[] = {
        TFEVENT_VERSION, TFEVENT_SESSION,      TFEVENT_SUMMARY, TFEVENT_GRAPH,  TFEVENT_SUMMARY,
        TFEVENT_SUMMARY, TFEVENT_RUN_METADATA, TFEVENT_SESSION, TFEVENT_SESSION};
    char bytes[4096];
    size_t size = read_all(path, bytes, sizeof(bytes)), at = 0;
    struct arena *arena = arena_new();
    for (int i = 0; i < ARRAY_LEN(kinds); i++) {
        const void *data;
        size_t data_size, used;
        CHECK_INT(
            record_parse(bytes + at, size - at, (int64_t)at, &data, &data_size, &used, &err),
            RECORD_OK);
        struct tfevent event;
        CHECK_OK(tfevent_parse(data, data_size, arena, &event, &err), &err);
        CHECK_INT(event.kind, kinds[i]);
        if (i == 1)
            CHECK_INT(event.step, 7);
        if (i == 5) {
            CHECK_INT(event.values_count, 2);
            CHECK_TEXT(event.values[0].tag, "loss");
            CHECK(event.values[0].scalar == 0.5);
        }
        if (i == 7)
            CHECK_TEXT(event.text, "model.ckpt-8");
        at += used;
    }
    CHECK_INT(at, size);
    arena_free(arena);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(rmdir(folder), 0);
    free(path);
}

/* Within 50 ms of the last write they wait; later they are written. */
TEST(events_are_written_when_due)
{
    char folder[64], bytes[4096];
    new_folder(folder);
    struct error err;
    clock_freeze(UINT64_C(1700000000000000));
    struct events *events = events_open(folder, &err);
    CHECK_OK(events, &err);
    size_t before = read_all(events_path(events), bytes, sizeof(bytes));
    events_scalars(events, 1, (struct tfevent_scalar[]){{"loss", 1}}, 1);
    clock_freeze(UINT64_C(1700000000049999));
    CHECK_OK(events_flush_due(events, &err), &err);
    CHECK_INT(read_all(events_path(events), bytes, sizeof(bytes)), before);
    clock_freeze(UINT64_C(1700000000050000));
    CHECK_OK(events_flush_due(events, &err), &err);
    CHECK(read_all(events_path(events), bytes, sizeof(bytes)) > before);
    CHECK_INT(unlink(events_path(events)), 0);
    /* A second file within the same second gets another name. */
    struct events *second = events_open(folder, &err);
    CHECK_OK(second, &err);
    struct events *third = events_open(folder, &err);
    CHECK_OK(third, &err);
    CHECK(strcmp(events_path(second), events_path(third)));
    CHECK_INT(unlink(events_path(second)), 0);
    CHECK_INT(unlink(events_path(third)), 0);
    events_discard(events);
    events_discard(second);
    events_discard(third);
    clock_freeze(0);
    CHECK_INT(rmdir(folder), 0);
}

TEST(events_say_what_cannot_be_written)
{
    struct error err;
    CHECK_FAILS(events_open("/nonexistent/folder", &err), &err, NOT_FOUND);
    CHECK(strstr(err.text, "/nonexistent/folder/events.out.tfevents."));
}
