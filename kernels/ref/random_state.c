/*
 * random_state.c - generators whose state is a variable: int64 (counter low, counter high,
 * key).
 */

#include "kernels/ref/random.h"
#include "runtime/resource.h"

#include <sys/random.h>

#define PHILOX_ALGORITHM 1
#define THREEFRY_ALGORITHM 2
#define AUTOMATIC_ALGORITHM 3

#define PHILOX_STATE 3 /* elements: two of the counter, one of the key */

static bool check_state(const struct variable *variable, int64_t elements, struct error *err)
{
    const struct tensor *state = &variable->value;
    if (state->dtype == DTYPE_NONE)
        return fail(err, NOT_FOUND, "variable '%s' has no value: it was not initialized",
                    variable->name);
    if (state->dtype != I64)
        return fail(err, INVALID, "dtype of RNG state variable must be int64, not %s",
                    dtype_name(state->dtype));
    if (state->shape.rank != 1)
        return fail(err, INVALID, "RNG state must have one and only one dimension, not %d",
                    state->shape.rank);
    if (state->count < elements)
        return fail(err, INVALID, "The size of the state must be at least %lld; got %lld",
                    (long long)elements, (long long)state->count);
    return true;
}

/* Copies the state as it was to `before` and moves the counter on by `blocks`. */
static bool advance(struct variable *variable, uint64_t blocks, struct philox *before,
                    struct error *err)
{
    pthread_mutex_lock(&variable->lock);
    bool ok = check_state(variable, PHILOX_STATE, err) &&
              variable_make_exclusive_locked(variable, err);
    if (ok) {
        uint64_t *state = variable->value.data;
        *before = (struct philox){.low = state[0], .high = state[1], .key = state[2]};
        struct philox after = *before;
        kernel_philox_skip(&after, blocks);
        state[0] = after.low;
        state[1] = after.high;
    }
    pthread_mutex_unlock(&variable->lock);
    return ok;
}

static bool check_algorithm(int64_t algorithm, struct error *err)
{
    if (algorithm == THREEFRY_ALGORITHM)
        return fail(err, UNIMPLEMENTED,
                    "Non-XLA devices don't support the ThreeFry algorithm.");
    return algorithm == PHILOX_ALGORITHM || algorithm == AUTOMATIC_ALGORITHM ||
           fail(err, INVALID, "Unsupported algorithm id: %lld", (long long)algorithm);
}

static bool read_algorithm(const struct kernel_call *call, int input, struct error *err)
{
    const struct tensor *tensor = kernel_in(call, input);
    char text[SHAPE_TEXT_BYTES];
    if (tensor->shape.rank != 0)
        return fail(err, INVALID, "algorithm must be of shape [], not %s",
                    shape_text(&tensor->shape, text, sizeof(text)));
    return check_algorithm(tensor_integer(tensor, 0), err);
}

bool kernel_random_of_variable(struct kernel_call *call, int algorithm, int64_t numbers,
                               struct philox *philox, struct error *err)
{
    struct variable *variable = kernel_variable(call, 0, err);
    return variable && read_algorithm(call, algorithm, err) &&
           advance(variable, (uint64_t)numbers * RANDOM_BLOCKS_PER_NUMBER, philox, err);
}

/* --- fills --- */

static bool stateful(struct kernel_call *call, enum random_kind kind, struct error *err)
{
    struct philox philox;
    struct tensor *out = kernel_random_output(call, 2, -1, err);
    if (!out || !kernel_random_of_variable(call, 1, out->count, &philox, err))
        return false;
    kernel_random_fill(&philox, kind, out);
    return true;
}

static bool uniform_run(struct kernel_call *call, struct error *err)
{
    return stateful(call, RANDOM_UNIFORM, err);
}
static bool normal_run(struct kernel_call *call, struct error *err)
{
    return stateful(call, RANDOM_NORMAL, err);
}
static bool truncated_run(struct kernel_call *call, struct error *err)
{
    return stateful(call, RANDOM_TRUNCATED, err);
}

static bool integers_run(struct kernel_call *call, struct error *err)
{
    struct philox philox;
    uint64_t low = 0, range = 0;
    struct tensor *out = kernel_random_output(call, 2, -1, err);
    if (!out)
        return false;
    if (call->in_count > 3 && !kernel_random_range(call, 3, out->count, &low, &range, err))
        return false;
    if (!kernel_random_of_variable(call, 1, out->count, &philox, err))
        return false;
    kernel_random_fill_integers(&philox, low, range, out);
    return true;
}

/* --- the state itself --- */

/* Moves the counter on by 256 times input 2; the state as it was goes to `before`. */
static bool skip(struct kernel_call *call, struct philox *before, struct error *err)
{
    struct variable *variable = kernel_variable(call, 0, err);
    const struct tensor *delta = kernel_in(call, 2);
    if (!variable || !read_algorithm(call, 1, err))
        return false;
    if (delta->shape.rank != 0)
        return fail(err, INVALID, "delta must be a scalar");
    return advance(variable, *(const uint64_t *)delta->data * RANDOM_BLOCKS_PER_NUMBER, before,
                   err);
}

static bool skip_run(struct kernel_call *call, struct error *err)
{
    struct philox before;
    return skip(call, &before, err);
}

static bool read_and_skip_run(struct kernel_call *call, struct error *err)
{
    struct philox before;
    if (!skip(call, &before, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &SHAPE(PHILOX_STATE), err);
    if (!out)
        return false;
    uint64_t *state = out->data;
    state[0] = before.low;
    state[1] = before.high;
    state[2] = before.key;
    return true;
}

/* Numbers that nobody can repeat. */
static bool any_ints_run(struct kernel_call *call, struct error *err)
{
    struct tensor *out = kernel_random_output(call, 0, -1, err);
    if (!out)
        return false;
    char *bytes = out->data;
    size_t left = (size_t)out->count * dtype_size(out->dtype);
    while (left > 0) {
        ssize_t got = getrandom(bytes, left < 256 ? left : 256, 0);
        if (got <= 0)
            return error_errno(err, INTERNAL, "getrandom");
        bytes += got;
        left -= (size_t)got;
    }
    return true;
}

#define STATE(name_, run_)                                                                     \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }
#define FILL(name_, dtypes_, run_)                                                             \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .type_attr = "dtype", .run = run_       \
    }
#define WIDE_INTEGERS (BIT(I32) | BIT(I64) | BIT(U32) | BIT(U64))

const struct kernel kernel_stateful_uniform_ref =
    FILL("StatefulUniform", DTYPES_FLOAT, uniform_run);
const struct kernel kernel_stateful_standard_normal_v2_ref =
    FILL("StatefulStandardNormalV2", DTYPES_FLOAT, normal_run);
const struct kernel kernel_stateful_truncated_normal_ref =
    FILL("StatefulTruncatedNormal", DTYPES_FLOAT, truncated_run);
const struct kernel kernel_stateful_uniform_int_ref =
    FILL("StatefulUniformInt", BIT(I32) | BIT(I64), integers_run);
const struct kernel kernel_stateful_uniform_full_int_ref =
    FILL("StatefulUniformFullInt", WIDE_INTEGERS, integers_run);
const struct kernel kernel_rng_skip_ref = STATE("RngSkip", skip_run);
const struct kernel kernel_rng_read_and_skip_ref = STATE("RngReadAndSkip", read_and_skip_run);
const struct kernel kernel_non_deterministic_ints_ref =
    FILL("NonDeterministicInts", WIDE_INTEGERS, any_ints_run);
