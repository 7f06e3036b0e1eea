/* tfevent_test.c - what is written is what is read; known bytes of TensorFlow's own. */

#include "base/arena.h"
#include "base/str.h"
#include "proto/record.h"
#include "proto/tfevent.h"
#include "tests/unit/test.h"

/* Parses the record at `*place` of `out` and moves behind it. */
static struct tfevent next_event(const struct str *out, size_t *place, struct arena *arena)
{
    struct error err;
    struct tfevent event;
    const void *data;
    size_t size, used;
    CHECK_INT(record_parse(out->data + *place, out->size - *place, (int64_t)*place, &data,
                           &size, &used, &err),
              RECORD_OK);
    CHECK_OK(tfevent_parse(data, size, arena, &event, &err), &err);
    *place += used;
    return event;
}

TEST(tfevent_version_is_tensorflows)
{
    struct str out = {0};
    tfevent_add_version(&out, 1700000000.75, "tensorflow.core.util.events_writer");
    CHECK_INT(out.size, 62 + 16);
    struct arena *arena = arena_new();
    size_t place = 0;
    struct tfevent event = next_event(&out, &place, arena);
    CHECK_INT(event.kind, TFEVENT_VERSION);
    CHECK_TEXT(event.text, "brain.Event:2");
    CHECK(event.wall_time == 1700000000);
    CHECK_INT(event.step, 0);
    arena_free(arena);
    str_release(&out);
}

TEST(tfevent_reads_what_it_writes)
{
    struct str out = {0};
    struct arena *arena = arena_new();
    tfevent_add_session(&out, 1.5, 7, TFEVENT_START, "");
    tfevent_add_graph(&out, 2, "graph", 5);
    tfevent_add_scalars(&out, 3, 8, (struct tfevent_scalar[]){{"loss", 0.25f}, {"accuracy", 1}},
                        2);
    tfevent_add_text(&out, 4, 9, "trainyard/run", "text", "{}", 2);
    tfevent_add_run_metadata(&out, 5, 10, "step10", "meta", 4);
    tfevent_add_session(&out, 6, 11, TFEVENT_CHECKPOINT, "model.ckpt-11");

    size_t place = 0;
    struct tfevent event = next_event(&out, &place, arena);
    CHECK_INT(event.kind, TFEVENT_SESSION);
    CHECK_INT(event.status, TFEVENT_START);
    CHECK_INT(event.step, 7);
    CHECK(event.wall_time == 1.5);

    event = next_event(&out, &place, arena);
    CHECK_INT(event.kind, TFEVENT_GRAPH);
    CHECK_INT(event.size, 5);
    CHECK(!memcmp(event.bytes, "graph", 5));

    event = next_event(&out, &place, arena);
    CHECK_INT(event.kind, TFEVENT_SUMMARY);
    CHECK_INT(event.values_count, 2);
    CHECK_TEXT(event.values[0].tag, "loss");
    CHECK_TEXT(event.values[0].plugin, "scalars");
    CHECK(event.values[0].is_scalar);
    CHECK(event.values[0].scalar == 0.25);
    CHECK_TEXT(event.values[1].tag, "accuracy");

    event = next_event(&out, &place, arena);
    CHECK_INT(event.values_count, 1);
    CHECK_TEXT(event.values[0].plugin, "text");
    CHECK(!event.values[0].is_scalar);
    CHECK_INT(event.values[0].size, 2);
    CHECK(!memcmp(event.values[0].bytes, "{}", 2));

    event = next_event(&out, &place, arena);
    CHECK_INT(event.kind, TFEVENT_RUN_METADATA);
    CHECK_TEXT(event.text, "step10");
    CHECK(!memcmp(event.bytes, "meta", 4));

    event = next_event(&out, &place, arena);
    CHECK_INT(event.status, TFEVENT_CHECKPOINT);
    CHECK_TEXT(event.text, "model.ckpt-11");
    CHECK_INT(place, out.size);
    arena_free(arena);
    str_release(&out);
}

/* TensorFlow 2 writes a float tensor of rank 0 with the plugin's name. */
TEST(tfevent_reads_scalars_of_tensorflow_2)
{
    static const char event_bytes[] = "\x09\x00\x00\x00\x00\x00\x00\xf0\x3f" /* wall_time 1 */
                                      "\x10\x05"                             /* step 5 */
                                      "\x2a\x21\x0a\x1f" /* summary, value */
                                      "\x0a\x04loss"
                                      "\x42\x0a\x08\x01\x12\x00\x22\x04\x00\x00\x20\x40"
                                      "\x4a\x0b\x0a\x09\x0a\x07scalars";
    struct error err;
    struct tfevent event;
    struct arena *arena = arena_new();
    CHECK_OK(tfevent_parse(event_bytes, sizeof(event_bytes) - 1, arena, &event, &err), &err);
    CHECK_INT(event.step, 5);
    CHECK_INT(event.values_count, 1);
    CHECK(event.values[0].is_scalar);
    CHECK(event.values[0].scalar == 2.5);
    arena_free(arena);
}

TEST(tfevent_refuses_what_is_none)
{
    struct error err;
    struct tfevent event;
    struct arena *arena = arena_new();
    CHECK_FAILS(tfevent_parse("\xff\xff", 2, arena, &event, &err), &err, INVALID);
    CHECK_FAILS(tfevent_parse("\x09\x00\x00\x00\x00\x00\x00\xf8\x7f", 9, arena, &event, &err),
                &err, INVALID);
    CHECK_OK(tfevent_parse("", 0, arena, &event, &err), &err);
    CHECK_INT(event.kind, TFEVENT_EMPTY);
    arena_free(arena);
}
