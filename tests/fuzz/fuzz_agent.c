/*
 * fuzz_agent.c - what agents and server tell each other; the first byte says which message.
 *
 * What unpacks is packed and unpacked again and is the same then.
 */

#include "proto/agent_certify_pb.h"
#include "proto/agent_pb.h"
#include "tests/fuzz/fuzz.h"

/* Unpacks a message; if it is one, appends it packed. */
#define MESSAGE(name)                                                                          \
    static bool again_##name(const void *bytes, size_t size, struct arena *arena,              \
                             struct str *out, struct error *err)                               \
    {                                                                                          \
        struct agent_##name message;                                                           \
        if (!agent_##name##_unpack(bytes, size, arena, &message, err))                         \
            return false;                                                                      \
        agent_##name##_pack(&message, out);                                                    \
        return true;                                                                           \
    }
MESSAGE(join_request)
MESSAGE(join_response)
MESSAGE(sync_request)
MESSAGE(sync_response)
MESSAGE(ship_request)
MESSAGE(ship_response)
MESSAGE(start_task)
MESSAGE(certify_request)
MESSAGE(certify_response)
MESSAGE(fetch_request)
MESSAGE(fetch_response)
MESSAGE(meet_request)
MESSAGE(meet_response)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool (*const again[])(const void *, size_t, struct arena *, struct str *,
                                 struct error *) = {
        again_join_request,  again_join_response,   again_sync_request,
        again_sync_response, again_ship_request,    again_ship_response,
        again_start_task,    again_certify_request, again_certify_response,
        again_fetch_request, again_fetch_response,  again_meet_request,
        again_meet_response};
    if (!size)
        return 0;
    int kind = data[0] % ARRAY_LEN(again);
    struct error err = {0};
    struct arena *arena = arena_new();
    struct str once = {0}, twice = {0};
    if (again[kind](data + 1, size - 1, arena, &once, &err)) {
        /* Packing may need more bytes (packed numbers of negative enums). */
        if (again[kind](once.data, once.size, arena, &twice, &err))
            FUZZ_CHECK(once.size == twice.size &&
                       (!once.size || !memcmp(once.data, twice.data, once.size)));
        else
            FUZZ_CHECK(err.code == EXHAUSTED);
    } else {
        FUZZ_CHECK((err.code == INVALID || err.code == EXHAUSTED) && err.text[0]);
    }
    str_release(&once);
    str_release(&twice);
    arena_free(arena);
    return 0;
}
