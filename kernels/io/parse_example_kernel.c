/* parse_example_kernel.c - ParseExample, ParseExampleV2, ParseSingleExample: where keys come
 * from. */

#include "kernels/io/parse_example.h"

#include "base/alloc.h"
#include "base/error.h"
#include "kernels/list.h"

/* How many there are of each kind; keys, and outputs, come in the order of this. */
struct counts {
    int sparse;
    int dense;
    int ragged;
};

static const int *type_list(const struct node *node, const char *name, int *count)
{
    const struct attr *attr = node_attr(node, name);
    *count = attr ? attr->count : 0;
    return attr ? attr->types : NULL;
}

/* Sets names of `count` keys from a vector, or from as many scalars. */
static bool name_keys(const struct kernel_call *call, int input, bool vector,
                      struct feature_key *keys, int count, struct error *err)
{
    if (vector && kernel_in(call, input)->count != count)
        return fail(err, INVALID, "Expected %d keys, got %lld", count,
                    (long long)kernel_in(call, input)->count);
    for (int i = 0; i < count; i++) {
        const struct tensor *tensor = kernel_in(call, vector ? input : input + i);
        if (!vector && tensor->shape.rank != 0)
            return fail(err, INVALID, "Expected keys to be scalars, got rank %d",
                        tensor->shape.rank);
        keys[i].name = tensor_strings(tensor)[vector ? i : 0].data;
        keys[i].name_size = tensor_strings(tensor)[vector ? i : 0].size;
    }
    return true;
}

/* Types, shapes and defaults of the keys; `defaults` is the first input of these. */
static bool describe_keys(const struct kernel_call *call, const struct counts *counts,
                          int defaults, struct feature_key *keys, struct error *err)
{
    const struct node *node = call->node;
    int count;
    const int *types = type_list(node, "sparse_types", &count);
    for (int i = 0; i < counts->sparse; i++, keys++) {
        keys->kind = FEATURE_SPARSE;
        keys->dtype = (enum dtype)types[i];
    }
    types = type_list(node, "Tdense", &count);
    const struct attr *shapes = node_attr(node, "dense_shapes");
    for (int i = 0; i < counts->dense; i++, keys++) {
        keys->kind = FEATURE_DENSE;
        keys->dtype = (enum dtype)types[i];
        keys->default_value = kernel_in(call, defaults + i);
        if (!kernel_feature_set_shape(keys, &shapes->shapes[i], err) ||
            !kernel_feature_check_default(keys, i, err))
            return false;
    }
    types = type_list(node, "ragged_value_types", &count);
    const int *splits = type_list(node, "ragged_split_types", &count);
    for (int i = 0; i < counts->ragged; i++, keys++) {
        keys->kind = FEATURE_RAGGED;
        keys->dtype = (enum dtype)types[i];
        keys->splits = (enum dtype)splits[i];
    }
    return true;
}

static void take_outputs(struct kernel_call *call, const struct counts *counts,
                         struct example_output *out)
{
    int s = counts->sparse, d = counts->dense, r = counts->ragged;
    for (int i = 0; i < s; i++) {
        kernel_output_take(call, i, &out[i].indices);
        kernel_output_take(call, s + i, &out[i].values);
        kernel_output_take(call, 2 * s + i, &out[i].shape);
    }
    for (int i = 0; i < d; i++)
        kernel_output_take(call, 3 * s + i, &out[s + i].values);
    for (int i = 0; i < r; i++) {
        kernel_output_take(call, 3 * s + d + i, &out[s + d + i].values);
        kernel_output_take(call, 3 * s + d + r + i, &out[s + d + i].indices);
    }
}

static bool parse_all(struct kernel_call *call, const struct counts *counts,
                      struct feature_keys *keys, const struct example_batch *batch,
                      struct error *err)
{
    if (!kernel_feature_index(keys, err))
        return false;
    struct example_output *out = alloc_array((size_t)keys->count, sizeof(*out));
    bool ok = kernel_example_parse(keys, batch, out, err);
    if (ok)
        take_outputs(call, counts, out);
    free(out);
    return ok;
}

/* Inputs 0 and 1: serialized Examples and (or none) their names. */
static bool read_batch(const struct kernel_call *call, bool scalar_fine,
                       struct example_batch *batch, struct error *err)
{
    const struct tensor *serialized = kernel_in(call, 0), *names = kernel_in(call, 1);
    char text[SHAPE_TEXT_BYTES];
    int rank = serialized->shape.rank;
    if (rank != 1 && !(scalar_fine && rank == 0))
        return fail(err, INVALID, "Expected serialized to be a %svector, got shape: %s",
                    scalar_fine ? "scalar or " : "",
                    shape_text(&serialized->shape, text, sizeof(text)));
    if (names->count && names->shape.rank != rank)
        return fail(err, INVALID, "Expected names to be a vector, got shape: %s",
                    shape_text(&names->shape, text, sizeof(text)));
    if (names->count && names->count != serialized->count)
        return fail(err, INVALID,
                    "Expected len(names) == len(serialized), but got: %lld vs. %lld",
                    (long long)names->count, (long long)serialized->count);
    *batch = (struct example_batch){
        .serialized = tensor_strings(serialized),
        .count = serialized->count,
        .single = rank == 0,
        .names = names->count ? names : NULL,
    };
    return true;
}

static bool example_run(struct kernel_call *call, struct error *err)
{
    struct example_batch batch;
    struct counts counts = {.sparse = (int)node_attr_int(call->node, "Nsparse", 0),
                            .dense = (int)node_attr_int(call->node, "Ndense", 0)};
    if (!read_batch(call, false, &batch, err))
        return false;
    struct feature_keys keys;
    int dense = 2 + counts.sparse;
    kernel_feature_keys_init(&keys, counts.sparse + counts.dense);
    bool ok = name_keys(call, 2, false, keys.keys, counts.sparse, err) &&
              name_keys(call, dense, false, keys.keys + counts.sparse, counts.dense, err) &&
              describe_keys(call, &counts, dense + counts.dense, keys.keys, err) &&
              parse_all(call, &counts, &keys, &batch, err);
    kernel_feature_keys_release(&keys);
    return ok;
}

static bool example_v2_run(struct kernel_call *call, struct error *err)
{
    struct example_batch batch;
    struct counts counts = {.sparse = (int)node_attr_int(call->node, "num_sparse", 0)};
    type_list(call->node, "Tdense", &counts.dense);
    type_list(call->node, "ragged_value_types", &counts.ragged);
    if (!read_batch(call, true, &batch, err))
        return false;
    struct feature_keys keys;
    kernel_feature_keys_init(&keys, counts.sparse + counts.dense + counts.ragged);
    struct feature_key *dense = keys.keys + counts.sparse, *ragged = dense + counts.dense;
    bool ok = name_keys(call, 2, true, keys.keys, counts.sparse, err) &&
              name_keys(call, 3, true, dense, counts.dense, err) &&
              name_keys(call, 4, true, ragged, counts.ragged, err) &&
              describe_keys(call, &counts, 5, keys.keys, err) &&
              parse_all(call, &counts, &keys, &batch, err);
    kernel_feature_keys_release(&keys);
    return ok;
}

/* Names are attributes here, and there is one Example. */
static bool single_run(struct kernel_call *call, struct error *err)
{
    const struct node *node = call->node;
    const struct tensor *serialized = kernel_in(call, 0);
    const struct attr *sparse = node_attr(node, "sparse_keys"),
                      *dense = node_attr(node, "dense_keys");
    struct counts counts = {.sparse = (int)node_attr_int(node, "num_sparse", 0)};
    type_list(node, "Tdense", &counts.dense);
    struct example_batch batch = {
        .serialized = tensor_strings(serialized), .count = 1, .single = true};
    char text[SHAPE_TEXT_BYTES];
    if (serialized->shape.rank != 0)
        return fail(err, INVALID, "Expected serialized to be a scalar, got shape: %s",
                    shape_text(&serialized->shape, text, sizeof(text)));
    struct feature_keys keys;
    kernel_feature_keys_init(&keys, counts.sparse + counts.dense);
    for (int i = 0; i < keys.count; i++) {
        const struct attr_bytes *name =
            i < counts.sparse ? &sparse->strings[i] : &dense->strings[i - counts.sparse];
        keys.keys[i].name = name->data;
        keys.keys[i].name_size = name->size;
    }
    bool ok = describe_keys(call, &counts, 1, keys.keys, err) &&
              parse_all(call, &counts, &keys, &batch, err);
    kernel_feature_keys_release(&keys);
    return ok;
}

/* The lists of types, shapes and keys must be as long as the counts say. */
static bool same_length(const struct node *node, const char *name, int64_t count,
                        struct error *err)
{
    const struct attr *attr = node_attr(node, name);
    int have = attr ? attr->count : 0;
    return have == count || fail(err, INVALID, "node '%s': %s has %d elements, not %lld",
                                 node->name, name, have, (long long)count);
}

static bool example_prepare(const struct node *node, void **state, struct error *err)
{
    (void)state;
    int dense, ragged;
    bool v1 = node_attr(node, "Nsparse") != NULL;
    int64_t sparse = node_attr_int(node, v1 ? "Nsparse" : "num_sparse", 0);
    type_list(node, "Tdense", &dense);
    type_list(node, "ragged_value_types", &ragged);
    return same_length(node, "sparse_types", sparse, err) &&
           same_length(node, "dense_shapes", dense, err) &&
           same_length(node, "ragged_split_types", ragged, err) &&
           (!node_attr(node, "sparse_keys") || (same_length(node, "sparse_keys", sparse, err) &&
                                                same_length(node, "dense_keys", dense, err))) &&
           (!v1 || same_length(node, "Tdense", node_attr_int(node, "Ndense", 0), err));
}

#define PARSE(name_, run_)                                                                     \
    {                                                                                          \
        .op = name_, .device = CPU, .prepare = example_prepare, .run = run_                    \
    }

const struct kernel kernel_parse_example = PARSE("ParseExample", example_run);
const struct kernel kernel_parse_example_v2 = PARSE("ParseExampleV2", example_v2_run);
const struct kernel kernel_parse_single_example = PARSE("ParseSingleExample", single_run);
