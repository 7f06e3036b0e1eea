/*
 * fuzz_master.c - what clients ask of a master, as it is read; the first byte says which
 * request.
 *
 * A request is read within the memory that the service allows it.  What is refused leaves
 * nothing behind and says why.
 */

#include "base/limits.h"
#include "runtime/master/master_wire.h"
#include "tests/fuzz/fuzz.h"

typedef bool read_request(const void *, size_t, struct arena *, struct master_request *,
                          struct error *);
typedef bool read_step(const void *, size_t, struct arena *, struct master_step *,
                       struct error *);

static read_request *const requests[] = {master_wire_create, master_wire_extend,
                                         master_wire_close, master_wire_list,
                                         master_wire_release_callable};
static read_step *const steps[] = {master_wire_run, master_wire_partial,
                                   master_wire_make_callable, master_wire_run_callable};

static bool request_again(int kind, const uint8_t *data, size_t size, struct arena *arena,
                          struct error *err)
{
    struct master_request in = {0};
    if (!requests[kind](data, size, arena, &in, err))
        return false;
    FUZZ_CHECK(in.graph_def_size <= size);
    FUZZ_CHECK(in.config.device_filters_count >= 0);
    for (int i = 0; i < in.config.device_filters_count; i++)
        FUZZ_CHECK(strlen(in.config.device_filters[i]) <= size);
    return true;
}

static bool reset_again(const uint8_t *data, size_t size, struct arena *arena,
                        struct error *err)
{
    const char *const *containers;
    int count;
    if (!master_wire_reset(data, size, arena, &containers, &count, err))
        return false;
    for (int i = 0; i < count; i++)
        FUZZ_CHECK(strlen(containers[i]) <= size);
    return true;
}

/* What is fed is answered back, as a fetch of the same names. */
static bool step_again(int kind, const uint8_t *data, size_t size, struct arena *arena,
                       struct error *err)
{
    struct master_step step;
    if (!steps[kind](data, size, arena, &step, err))
        return false;
    struct str answer = {0};
    if (steps[kind] == master_wire_run)
        master_wire_ran(step.run.feeds, step.feeds, step.feeds_count, &(struct str){0}, NULL,
                        &answer);
    else if (steps[kind] == master_wire_run_callable)
        master_wire_callable_ran(step.feeds, step.feeds_count, &(struct str){0}, &answer);
    str_release(&answer);
    master_wire_release(&step);
    FUZZ_CHECK(step.feeds_count == 0);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    int kind = data[0] % (int)(ARRAY_LEN(requests) + 1 + ARRAY_LEN(steps));
    int step = kind - (int)ARRAY_LEN(requests) - 1;
    struct error err = {0};
    struct arena *arena =
        arena_new_limited((size - 1) * LIMIT_MESSAGE_EXPANSION + LIMIT_MESSAGE_EXPANSION_BASE);
    bool ok = step >= 0    ? step_again(step, data + 1, size - 1, arena, &err)
              : step == -1 ? reset_again(data + 1, size - 1, arena, &err)
                           : request_again(kind, data + 1, size - 1, arena, &err);
    FUZZ_CHECK(ok || (err.code && err.text[0]));
    arena_free(arena);
    return 0;
}
