/* accumulator.c - the nodes that make accumulators, add to them, and wait for their sums. */

#include "kernels/state/accumulator.h"

#include "base/alloc.h"
#include "kernels/state/handle.h"

/* --- waiting --- */

struct take {
    struct attempt attempt; /* first */
    struct kernel_call *call;
    int64_t required;
    struct tensor out[ACCUMULATOR_TENSORS];
};

static struct accumulator *accumulator_of(struct counter *counter)
{
    return (struct accumulator *)((char *)counter - offsetof(struct accumulator, counter));
}

/* The first in line takes all there is. */
static void serve_locked(struct counter *counter, struct attempt_list *ended)
{
    struct accumulator *accumulator = accumulator_of(counter);
    while (accumulator->takes.first) {
        struct take *take = (struct take *)accumulator->takes.first;
        if (accumulator->count < take->required)
            return;
        struct error err;
        bool ok = accumulator->spec.sparse
                      ? kernel_accumulator_take_sparse(accumulator, take->out, &err)
                      : kernel_accumulator_take_dense(accumulator, take->out, &err);
        if (ok) {
            accumulator->step++;
            accumulator->count = 0;
        } else {
            attempt_fail(&take->attempt, err.code, "%s", err.text);
        }
        attempt_end_locked(&take->attempt, ended);
    }
}

static void end_take(struct attempt *attempt)
{
    struct take *take = (struct take *)attempt;
    struct kernel_call *call = take->call;
    struct accumulator *accumulator = accumulator_of(attempt->counter);
    for (int i = 0; i < ACCUMULATOR_TENSORS; i++) {
        if (!attempt->failure && take->out[i].dtype != DTYPE_NONE)
            kernel_output_take(call, i, &take->out[i]);
        tensor_release(&take->out[i]);
    }
    kernel_done(call, attempt->failure);
    attempt_release(attempt);
    free(take);
    resource_unref(&accumulator->resource);
}

/* --- making --- */

static bool accumulator_read(const struct node *node, void **out, struct error *err)
{
    (void)err;
    struct accumulator_spec *spec = alloc_bytes(sizeof(*spec));
    const struct shape *shape = node_attr_shape(node, "shape");
    spec->dtype = (enum dtype)node_attr_type(node, "dtype");
    spec->shape = shape ? *shape : SHAPE_UNKNOWN;
    spec->sparse = !strncmp(node->op->name, "Sparse", strlen("Sparse"));
    spec->mean = strcmp(node_attr_string(node, "reduction_type", "MEAN"), "SUM") != 0;
    *out = spec;
    return true;
}

static void destroy(struct resource *resource)
{
    struct accumulator *accumulator = (struct accumulator *)resource;
    assert(!accumulator->takes.first);
    tensor_release(&accumulator->sum);
    free(accumulator->rows);
    free(accumulator->rows_count);
    attempt_counter_release(&accumulator->counter);
    free(accumulator->name);
    free(accumulator);
}

static struct resource *accumulator_make(const void *spec, const char *name,
                                         struct kernel_call *call, struct error *err)
{
    (void)call;
    (void)err;
    struct accumulator *accumulator = alloc_bytes(sizeof(*accumulator));
    accumulator->resource =
        (struct resource){.kind = ACCUMULATOR_KIND, .references = 1, .destroy = destroy};
    attempt_counter_init(&accumulator->counter, serve_locked);
    accumulator->spec = *(const struct accumulator_spec *)spec;
    accumulator->name = alloc_text(name);
    return &accumulator->resource;
}

/* A shared one is taken as it is; what does not suit it is refused when it is used. */
static const struct handle_class accumulator_class = {
    .kind = ACCUMULATOR_KIND,
    .read = accumulator_read,
    .free = free,
    .make = accumulator_make,
};

/* --- using --- */

static struct accumulator *accumulator_in(struct kernel_call *call, struct error *err)
{
    return (struct accumulator *)kernel_handle_get(call, 0, ACCUMULATOR_KIND, err);
}

/* What the node is about must be what the accumulator holds. */
static bool check(const struct accumulator *accumulator, const struct node *node,
                  struct error *err)
{
    bool sparse = !strncmp(node->op->name, "Sparse", strlen("Sparse"));
    enum dtype dtype = (enum dtype)node_attr_type(node, "dtype");
    if (sparse != accumulator->spec.sparse || dtype != accumulator->spec.dtype)
        return fail(err, INVALID,
                    "Signature mismatch: accumulator '%s' holds %s gradients of %s, the node "
                    "is about %s ones of %s",
                    accumulator->name, accumulator->spec.sparse ? "sparse" : "dense",
                    dtype_name(accumulator->spec.dtype), sparse ? "sparse" : "dense",
                    dtype_name(dtype));
    return true;
}

/* Whether the next gradient is the last that the first in line waits for. */
static bool is_last_locked(const struct accumulator *accumulator)
{
    const struct take *take = (const struct take *)accumulator->takes.first;
    return take && accumulator->count + 1 >= take->required;
}

static bool apply(struct accumulator *accumulator, struct kernel_call *call, int64_t step,
                  struct error *err)
{
    struct attempt_list ended = {0};
    bool ok = true;
    pthread_mutex_lock(&accumulator->counter.lock);
    if (step >= accumulator->step) {
        ok = accumulator->spec.sparse
                 ? kernel_accumulator_add_sparse(accumulator, call, err)
                 : kernel_accumulator_add_dense(accumulator, call, is_last_locked(accumulator),
                                                err);
        accumulator->count += ok;
        serve_locked(&accumulator->counter, &ended);
    }
    pthread_mutex_unlock(&accumulator->counter.lock);
    attempt_finish(&ended);
    return ok;
}

static bool apply_run(struct kernel_call *call, struct error *err)
{
    int64_t step;
    struct accumulator *accumulator = accumulator_in(call, err);
    bool ok = accumulator && check(accumulator, call->node, err) &&
              kernel_scalar(call, 1, "local_step", &step, err) &&
              apply(accumulator, call, step, err);
    if (accumulator)
        resource_unref(&accumulator->resource);
    return ok;
}

static void take_start(struct kernel_call *call)
{
    struct error err;
    int64_t required;
    struct accumulator *accumulator = accumulator_in(call, &err);
    bool ok = accumulator && check(accumulator, call->node, &err) &&
              kernel_scalar(call, 1, "num_required", &required, &err);
    if (ok && required <= 0)
        ok = fail(&err, INVALID, "Argument num_required must be positive, but was %lld",
                  (long long)required);
    if (!ok) {
        if (accumulator)
            resource_unref(&accumulator->resource);
        kernel_done(call, &err);
        return;
    }
    struct take *take = alloc_bytes(sizeof(*take));
    *take = (struct take){.attempt = {.what = "TakeGradient", .done = end_take},
                          .call = call,
                          .required = required};
    resource_ref(&accumulator->resource); /* the attempt's */
    attempt_begin(&take->attempt, &accumulator->counter, &accumulator->takes,
                  kernel_cancel(call));
    resource_unref(&accumulator->resource);
}

static bool set_step_run(struct kernel_call *call, struct error *err)
{
    int64_t step;
    struct accumulator *accumulator = accumulator_in(call, err);
    bool ok = accumulator && kernel_scalar(call, 1, "new_global_step", &step, err);
    if (ok) {
        pthread_mutex_lock(&accumulator->counter.lock);
        accumulator->step = step;
        pthread_mutex_unlock(&accumulator->counter.lock);
    }
    if (accumulator)
        resource_unref(&accumulator->resource);
    return ok;
}

static bool num_accumulated_run(struct kernel_call *call, struct error *err)
{
    struct accumulator *accumulator = accumulator_in(call, err);
    struct tensor *out = accumulator ? kernel_output(call, 0, &SHAPE_SCALAR, err) : NULL;
    if (out) {
        pthread_mutex_lock(&accumulator->counter.lock);
        *(int32_t *)out->data = (int32_t)accumulator->count;
        pthread_mutex_unlock(&accumulator->counter.lock);
    }
    if (accumulator)
        resource_unref(&accumulator->resource);
    return out;
}

#define TYPES (BIT(F16) | BIT(F32) | BIT(F64))

#define MAKER(name_, op_)                                                                      \
    static bool name_##_prepare(const struct node *node, void **state, struct error *err)      \
    {                                                                                          \
        return kernel_handle_prepare(&accumulator_class, node, state, err);                    \
    }                                                                                          \
    const struct kernel kernel_##name_ = {                                                     \
        .op = op_,                                                                             \
        .device = CPU,                                                                         \
        .dtypes = TYPES,                                                                       \
        .type_attr = "dtype",                                                                  \
        .prepare = name_##_prepare,                                                            \
        .release = kernel_handle_release,                                                      \
        .run = kernel_handle_run,                                                              \
    }
#define RUN(name_, op_, run_)                                                                  \
    const struct kernel kernel_##name_ = {.op = op_, .device = CPU, .run = run_}
#define START(name_, op_, start_)                                                              \
    const struct kernel kernel_##name_ = {.op = op_, .device = CPU, .start = start_}

MAKER(conditional_accumulator, "ConditionalAccumulator");
MAKER(resource_conditional_accumulator, "ResourceConditionalAccumulator");
MAKER(sparse_conditional_accumulator, "SparseConditionalAccumulator");
RUN(accumulator_apply_gradient, "AccumulatorApplyGradient", apply_run);
RUN(resource_accumulator_apply_gradient, "ResourceAccumulatorApplyGradient", apply_run);
RUN(sparse_accumulator_apply_gradient, "SparseAccumulatorApplyGradient", apply_run);
START(accumulator_take_gradient, "AccumulatorTakeGradient", take_start);
START(resource_accumulator_take_gradient, "ResourceAccumulatorTakeGradient", take_start);
START(sparse_accumulator_take_gradient, "SparseAccumulatorTakeGradient", take_start);
RUN(accumulator_set_global_step, "AccumulatorSetGlobalStep", set_step_run);
RUN(resource_accumulator_set_global_step, "ResourceAccumulatorSetGlobalStep", set_step_run);
RUN(accumulator_num_accumulated, "AccumulatorNumAccumulated", num_accumulated_run);
RUN(resource_accumulator_num_accumulated, "ResourceAccumulatorNumAccumulated",
    num_accumulated_run);
