/*
 * fuzz_worker.c - what tasks ask of a worker and what workers answer, as they are read; the
 * first byte says which message.
 *
 * What is refused leaves nothing behind and says why, with a code that there is.
 */

#include "base/limits.h"
#include "runtime/worker/wire.h"
#include "tests/fuzz/fuzz.h"

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
    int64_t step_id;
    const char *key;
    if (!wire_read_receive(bytes, size, arena, &step_id, &key, err))
        return false;
    FUZZ_CHECK(strlen(key) <= size);
    return true;
}

static bool read_status(const void *bytes, size_t size, struct arena *arena, struct error *err)
{
    enum { DEVICES_MAX = 3 };
    struct device devices[DEVICES_MAX];
    int count;
    (void)arena;
    bool ok = wire_read_status(bytes, size, devices, DEVICES_MAX, &count, err);
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
    struct tensor value;
    bool dead;
    (void)arena;
    bool ok = wire_read_received(bytes, size, &value, &dead, err);
    if (ok && !dead)
        tensor_release(&value);
    return ok;
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
                                             read_received};
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
