/*
 * fuzz_worker.c - what tasks ask of a worker and what workers answer, as they are read; the
 * first byte says which message.
 *
 * What is refused leaves nothing behind and says why, with a code that there is.
 */

#include "base/limits.h"
#include "proto/message.h"
#include "runtime/tensor_pb.h"
#include "runtime/worker/incoming.h"
#include "runtime/worker/moved.h"
#include "runtime/worker/wire.h"
#include "runtime/worker/wire_collective.h"
#include "tests/fuzz/fuzz.h"

extern const ProtobufCMessageDescriptor tensorflow__recv_tensor_response__descriptor;
extern const ProtobufCMessageDescriptor tensorflow__run_graph_request__descriptor;
extern const ProtobufCMessageDescriptor tensorflow__run_graph_response__descriptor;

typedef bool read_message(const void *bytes, size_t size, struct arena *arena,
                          struct error *err);

#define SESSION(name)                                                                          \
    static bool read_##name(const void *bytes, size_t size, struct arena *arena,               \
                            struct error *err)                                                 \
    {                                                                                          \
        struct wire_session in = {0};                                                          \
        bool ok = wire_read_##name(bytes, size, arena, &in, err);                              \
        FUZZ_CHECK(!ok || in.graph_def_size <= size);                                          \
        return ok;                                                                             \
    }
SESSION(create_session)
SESSION(delete_session)
SESSION(register_graph)
SESSION(deregister_graph)

/* What was sent goes out again, and is read as it was. */
static bool read_run(const void *bytes, size_t size, struct arena *arena, struct error *err)
{
    struct wire_run run, again;
    if (!wire_read_run(bytes, size, arena, &run, err))
        return false;
    struct str packed = {0};
    struct arena *other = arena_new();
    struct error later = {0};
    wire_write_run(&run, &packed);
    if (wire_read_run(packed.data, packed.size, other, &again, &later)) {
        FUZZ_CHECK(again.step_id == run.step_id && again.sends_count == run.sends_count &&
                   again.receives_count == run.receives_count);
        wire_release_run(&again);
    } else {
        FUZZ_CHECK(later.code == EXHAUSTED);
    }
    wire_release_run(&run);
    arena_free(other);
    str_release(&packed);
    return true;
}

static bool read_cleanup_graph(const void *bytes, size_t size, struct arena *arena,
                               struct error *err)
{
    int64_t step_id;
    (void)arena;
    return wire_read_cleanup_graph(bytes, size, &step_id, err);
}

static bool read_cleanup_all(const void *bytes, size_t size, struct arena *arena,
                             struct error *err)
{
    const char *const *containers;
    int count;
    if (!wire_read_cleanup_all(bytes, size, arena, &containers, &count, err))
        return false;
    for (int i = 0; i < count; i++)
        FUZZ_CHECK(strlen(containers[i]) <= size);
    return true;
}

static bool read_receive(const void *bytes, size_t size, struct arena *arena, struct error *err)
{
    struct wire_receive in;
    if (!wire_read_receive(bytes, size, arena, &in, err))
        return false;
    FUZZ_CHECK(strlen(in.key) <= size);
    return true;
}

static bool read_status(const void *bytes, size_t size, struct arena *arena, struct error *err)
{
    enum { DEVICES_MAX = 3 };
    struct device devices[DEVICES_MAX];
    int count;
    bool exchanges;
    (void)arena;
    bool ok = wire_read_status(bytes, size, devices, DEVICES_MAX, &count, &exchanges, err);
    FUZZ_CHECK(count >= 0 && count <= DEVICES_MAX);
    return ok;
}

static bool read_handle(const void *bytes, size_t size, struct arena *arena, struct error *err)
{
    char handle[17];
    (void)arena;
    bool ok = wire_read_handle(bytes, size, handle, sizeof(handle), err);
    FUZZ_CHECK(!ok || strlen(handle) < sizeof(handle));
    return ok;
}

/* Two tensors are awaited: where the second is missing, the first is not kept. */
static bool read_ran(const void *bytes, size_t size, struct arena *arena, struct error *err)
{
    static const char *const keys[] = {"a", "b"};
    struct tensor received[ARRAY_LEN(keys)];
    struct str statistics = {0}, graph = {0};
    (void)arena;
    const struct wire_ran out = {.keys = keys,
                                 .received = received,
                                 .received_count = ARRAY_LEN(keys),
                                 .step_stats = &statistics,
                                 .graph_def = &graph};
    bool ok = wire_read_ran(bytes, size, &out, err);
    for (int i = 0; ok && i < out.received_count; i++)
        tensor_release(&received[i]);
    FUZZ_CHECK(statistics.size <= size && graph.size <= size);
    str_release(&statistics);
    str_release(&graph);
    return ok;
}

static bool read_received(const void *bytes, size_t size, struct arena *arena,
                          struct error *err)
{
    struct wire_received out;
    (void)arena;
    bool ok = wire_read_received(bytes, size, NULL, &out, err);
    if (ok && !out.dead)
        tensor_release(&out.value);
    return ok;
}

/* Messages of a tensor in pieces, each behind its size (two bytes). */
static bool read_incoming(const void *bytes, size_t size, struct arena *arena,
                          struct error *err)
{
    const uint8_t *at = bytes, *end = at + size;
    struct incoming incoming = {0};
    bool ok = true;
    (void)arena;
    while (ok && end - at >= 2) {
        size_t left = (size_t)at[0] << 8 | at[1];
        at += 2;
        if (left > (size_t)(end - at))
            left = (size_t)(end - at);
        ok = incoming_take(&incoming, at, left, err);
        at += left;
    }
    ok = ok && incoming_end(&incoming, err);
    incoming_release(&incoming);
    return ok;
}

/* A message whose tensors' elements are borrowed is the message. */
static bool read_cut(const void *bytes, size_t size, struct arena *arena, struct error *err)
{
    static const struct {
        const ProtobufCMessageDescriptor *message;
        unsigned field;
    } kinds[] = {{&tensorflow__recv_tensor_response__descriptor, 1},
                 {&tensorflow__run_graph_request__descriptor, 3},
                 {&tensorflow__run_graph_response__descriptor, 1}};
    bool any = false;
    for (int i = 0; i < ARRAY_LEN(kinds); i++) {
        struct str packed = {0}, packed_cut = {0};
        arena_clear(arena);
        const ProtobufCMessage *whole =
            message_unpack(kinds[i].message, bytes, size, arena, err);
        if (!whole)
            continue;
        message_pack(whole, &packed);
        arena_clear(arena);
        const ProtobufCMessage *cut =
            tensor_unpack_message(kinds[i].message, kinds[i].field, 1, bytes, size, arena, err);
        FUZZ_CHECK(cut);
        message_pack(cut, &packed_cut);
        FUZZ_CHECK(packed.size == packed_cut.size &&
                   !memcmp(str_text(&packed), str_text(&packed_cut), packed.size));
        str_release(&packed);
        str_release(&packed_cut);
        any = true;
    }
    return any;
}

static bool read_complete_group(const void *bytes, size_t size, struct arena *arena,
                                struct error *err)
{
    struct wire_member in;
    return wire_read_complete_group(bytes, size, arena, &in, err);
}

static bool read_group(const void *bytes, size_t size, struct arena *arena, struct error *err)
{
    struct collective_group group;
    return wire_read_group(bytes, size, arena, &group, err);
}

static bool read_complete_instance(const void *bytes, size_t size, struct arena *arena,
                                   struct error *err)
{
    struct wire_member in;
    return wire_read_complete_instance(bytes, size, arena, &in, err);
}

static bool read_instance(const void *bytes, size_t size, struct arena *arena,
                          struct error *err)
{
    int source;
    (void)arena;
    return wire_read_instance(bytes, size, &source, err);
}

static bool read_get_steps(const void *bytes, size_t size, struct arena *arena,
                           struct error *err)
{
    const int64_t *keys;
    int count;
    return wire_read_get_steps(bytes, size, arena, &keys, &count, err);
}

static bool read_steps(const void *bytes, size_t size, struct arena *arena, struct error *err)
{
    int64_t step_id;
    (void)arena;
    return wire_read_steps(bytes, size, 1, &step_id, err);
}

static bool read_receive_buffer(const void *bytes, size_t size, struct arena *arena,
                                struct error *err)
{
    struct wire_buffer in;
    return wire_read_receive_buffer(bytes, size, arena, &in, err);
}

static bool read_buffer(const void *bytes, size_t size, struct arena *arena, struct error *err)
{
    char into[4];
    (void)arena;
    return wire_read_buffer(bytes, size, into, sizeof(into), err);
}

static bool read_finished(const void *bytes, size_t size, struct arena *arena,
                          struct error *err)
{
    int64_t request_id;
    (void)arena;
    return wire_read_finished(bytes, size, &request_id, err);
}

static bool read_meet(const void *bytes, size_t size, struct arena *arena, struct error *err)
{
    struct wire_meet in;
    if (!wire_read_meet(bytes, size, arena, &in, err))
        return false;
    FUZZ_CHECK(strlen(in.host) + NEAR_NONCE_BYTES <= size);
    return true;
}

static bool read_met(const void *bytes, size_t size, struct arena *arena, struct error *err)
{
    struct wire_met met;
    if (!wire_read_met(bytes, size, arena, &met, err))
        return false;
    FUZZ_CHECK(met.pid > 0 && met.pid <= INT32_MAX);
    FUZZ_CHECK(strlen(met.socket) + strlen(met.secret) <= size);
    return true;
}

/* What is believed goes out again, and is read as it was. */
static bool read_moved(const void *bytes, size_t size, struct arena *arena, struct error *err)
{
    struct moved in, again;
    struct str packed = {0};
    if (!moved_read(bytes, size, arena, &in, err))
        return false;
    FUZZ_CHECK(in.epoch > 0 && strlen(in.address) <= size && strchr(in.address, ':'));
    moved_write(&in, &packed);
    struct arena *other = arena_new();
    struct error later;
    FUZZ_CHECK(moved_read(packed.data, packed.size, other, &again, &later));
    FUZZ_CHECK(again.epoch == in.epoch && !strcmp(again.task, in.task) &&
               !strcmp(again.address, in.address));
    arena_free(other);
    str_release(&packed);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static read_message *const messages[] = {read_create_session,
                                             read_delete_session,
                                             read_register_graph,
                                             read_deregister_graph,
                                             read_run,
                                             read_cleanup_graph,
                                             read_cleanup_all,
                                             read_receive,
                                             read_status,
                                             read_handle,
                                             read_ran,
                                             read_received,
                                             read_incoming,
                                             read_cut,
                                             read_finished,
                                             read_meet,
                                             read_met,
                                             read_complete_group,
                                             read_group,
                                             read_complete_instance,
                                             read_instance,
                                             read_get_steps,
                                             read_steps,
                                             read_receive_buffer,
                                             read_buffer,
                                             read_moved};
    if (!size)
        return 0;
    struct error err = {0};
    struct arena *arena =
        arena_new_limited((size - 1) * LIMIT_MESSAGE_EXPANSION + LIMIT_MESSAGE_EXPANSION_BASE);
    if (!messages[data[0] % ARRAY_LEN(messages)](data + 1, size - 1, arena, &err))
        FUZZ_CHECK(err.code > 0 && err.code <= UNAUTHENTICATED);
    arena_free(arena);
    return 0;
}
