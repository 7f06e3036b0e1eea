/* string_join.c - strings put together. */

#include "kernels/ref/move.h"

#include "base/str.h"

static void append(struct str *out, const struct tensor *in, int64_t index)
{
    const struct tensor_string *text = tensor_strings(in) + index;
    str_add_bytes(out, text->data, text->size);
}

static bool add_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0), *y = kernel_in(call, 1);
    struct shape shape;
    if (!shape_broadcast(&x->shape, &y->shape, &shape, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    struct places x_places = kernel_broadcast_places(&x->shape, &shape);
    struct places y_places = kernel_broadcast_places(&y->shape, &shape);
    struct str joined = {0};
    for (int64_t i = 0; i < out->count; i++) {
        str_clear(&joined);
        append(&joined, x, kernel_place(&x_places, &shape, i));
        append(&joined, y, kernel_place(&y_places, &shape, i));
        tensor_set_string(out, i, str_text(&joined), joined.size);
    }
    str_release(&joined);
    return true;
}

/* Inputs are of one shape, or scalars, which go with every element. */
static bool string_join_run(struct kernel_call *call, struct error *err)
{
    const char *separator = node_attr_string(call->node, "separator", "");
    const struct shape scalar = SHAPE_SCALAR, *shape = &scalar;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    for (int i = 0; i < call->in_count; i++) {
        const struct shape *own = &kernel_in(call, i)->shape;
        if (own->rank > 0 && shape->rank > 0 && !shape_equal(own, shape))
            return fail(err, INVALID, "Input shapes do not match: %s vs. %s",
                        shape_text(shape, a, sizeof(a)), shape_text(own, b, sizeof(b)));
        shape = own->rank > 0 ? own : shape;
    }
    struct tensor *out = kernel_output(call, 0, shape, err);
    if (!out)
        return false;
    struct str joined = {0};
    for (int64_t k = 0; k < out->count; k++) {
        str_clear(&joined);
        for (int i = 0; i < call->in_count; i++) {
            const struct tensor *in = kernel_in(call, i);
            str_add(&joined, i ? separator : "");
            append(&joined, in, in->shape.rank ? k : 0);
        }
        tensor_set_string(out, k, str_text(&joined), joined.size);
    }
    str_release(&joined);
    return true;
}

static bool sharded_filename_run(struct kernel_call *call, struct error *err)
{
    int64_t shard, shards;
    char text[SHAPE_TEXT_BYTES];
    if (kernel_in(call, 0)->shape.rank != 0)
        return fail(err, INVALID, "basename must be a scalar, got shape %s",
                    shape_text(&kernel_in(call, 0)->shape, text, sizeof(text)));
    if (!kernel_scalar(call, 1, "shard", &shard, err) ||
        !kernel_scalar(call, 2, "num_shards", &shards, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &SHAPE_SCALAR, err);
    if (!out)
        return false;
    struct str name = {0};
    append(&name, kernel_in(call, 0), 0);
    str_printf(&name, "-%05lld-of-%05lld", (long long)shard, (long long)shards);
    tensor_set_string(out, 0, str_text(&name), name.size);
    str_release(&name);
    return true;
}

const struct kernel kernel_add_string = {
    .op = "Add", .device = CPU, .dtypes = BIT(STRING), .run = add_run};
const struct kernel kernel_string_join = {
    .op = "StringJoin", .device = CPU, .run = string_join_run};
const struct kernel kernel_sharded_filename = {
    .op = "ShardedFilename", .device = CPU, .run = sharded_filename_run};
