/*
 * parse_sequence_kernel.c - ParseSequenceExample, its V2, ParseSingleSequenceExample: where the
 * keys come from and where the tensors go.
 */

#include "kernels/io/parse_sequence.h"

#include "base/alloc.h"
#include "base/error.h"
#include "kernels/list.h"

/* Keys of one half (context or feature lists), sparse ones first, then dense, then ragged. */
struct half {
    const char *prefix;
    int sparse, dense, ragged;
    struct feature_keys keys;
};

struct sequence {
    struct half context;
    struct half lists;
    bool *optional; /* by key of lists */
    struct example_batch batch;
};

static const struct attr *attr_of(const struct node *node, const struct half *half,
                                  const char *suffix)
{
    char name[64];
    snprintf(name, sizeof(name), "%s%s", half->prefix, suffix);
    return node_attr(node, name);
}

static int length(const struct attr *attr)
{
    return attr ? attr->count : 0;
}

/* TensorFlow is not of one mind: Tcontext_dense, but feature_list_dense_types. */
static const struct attr *dense_types(const struct node *node, const struct half *half)
{
    const struct attr *attr = attr_of(node, half, "_dense_types");
    return attr ? attr : node_attr(node, "Tcontext_dense");
}

static bool half_init(struct half *half, const char *prefix, const struct node *node,
                      struct error *err)
{
    half->prefix = prefix;
    const struct attr *sparse = attr_of(node, half, "_sparse_types");
    const struct attr *ragged = attr_of(node, half, "_ragged_value_types");
    const struct attr *splits = attr_of(node, half, "_ragged_split_types");
    const struct attr *shapes = attr_of(node, half, "_dense_shapes");
    const struct attr *dense = dense_types(node, half);
    half->sparse = length(sparse);
    half->dense = length(dense);
    half->ragged = length(ragged);
    kernel_feature_keys_init(&half->keys, half->sparse + half->dense + half->ragged);
    if (length(shapes) != half->dense || length(splits) != half->ragged)
        return fail(err, INVALID, "node '%s': %d %s dense shapes for %d keys", node->name,
                    length(shapes), prefix, half->dense);
    struct feature_key *key = half->keys.keys;
    for (int i = 0; i < half->sparse; i++, key++) {
        key->kind = FEATURE_SPARSE;
        key->dtype = (enum dtype)sparse->types[i];
    }
    for (int i = 0; i < half->dense; i++, key++) {
        key->kind = FEATURE_DENSE;
        key->dtype = (enum dtype)dense->types[i];
        if (!kernel_feature_set_shape(key, &shapes->shapes[i], err))
            return false;
    }
    for (int i = 0; i < half->ragged; i++, key++) {
        key->kind = FEATURE_RAGGED;
        key->dtype = (enum dtype)ragged->types[i];
        key->splits = (enum dtype)splits->types[i];
    }
    return true;
}

/* --- names: vectors, scalars or attributes --- */

static bool name_by_vector(const struct tensor *names, struct feature_key *keys, int count,
                           struct error *err)
{
    if (names->count != count)
        return fail(err, INVALID, "Expected %d keys, got %lld", count, (long long)names->count);
    for (int i = 0; i < count; i++) {
        keys[i].name = tensor_strings(names)[i].data;
        keys[i].name_size = tensor_strings(names)[i].size;
    }
    return true;
}

static bool name_by_scalars(const struct kernel_call *call, int input, struct feature_key *keys,
                            int count, struct error *err)
{
    for (int i = 0; i < count; i++)
        if (!name_by_vector(kernel_in(call, input + i), keys + i, 1, err))
            return false;
    return true;
}

static bool name_by_attr(const struct node *node, const char *name, struct feature_key *keys,
                         int count, struct error *err)
{
    const struct attr *attr = node_attr(node, name);
    if (length(attr) != count)
        return fail(err, INVALID, "node '%s': %s has %d elements, not %d", node->name, name,
                    length(attr), count);
    for (int i = 0; i < count; i++) {
        keys[i].name = attr->strings[i].data;
        keys[i].name_size = attr->strings[i].size;
    }
    return true;
}

/* A dense list of that name may be absent. */
static bool set_optional(struct sequence *seq, const char *name, size_t size, struct error *err)
{
    int k = kernel_feature_find(&seq->lists.keys, name, size);
    if (k < 0)
        return fail(err, INVALID,
                    "feature_list_dense_missing_assumed_empty names '%.*s', which is no key",
                    (int)size, name);
    seq->optional[k] = true;
    return true;
}

/* --- batch, defaults --- */

static bool read_batch(const struct kernel_call *call, int names_input, bool vector_fine,
                       bool scalar_fine, struct example_batch *batch, struct error *err)
{
    const struct tensor *serialized = kernel_in(call, 0), *names = kernel_in(call, names_input);
    char text[SHAPE_TEXT_BYTES];
    int rank = serialized->shape.rank;
    if (!(rank == 0 && scalar_fine) && !(rank == 1 && vector_fine))
        return fail(err, INVALID, "Expected serialized to be a %s, got shape: %s",
                    vector_fine ? "vector" : "scalar",
                    shape_text(&serialized->shape, text, sizeof(text)));
    if (names->count && names->count != serialized->count)
        return fail(err, INVALID,
                    "Expected len(debug_name) == len(serialized), but got: %lld vs. %lld",
                    (long long)names->count, (long long)serialized->count);
    *batch = (struct example_batch){
        .serialized = tensor_strings(serialized),
        .count = serialized->count,
        .single = rank == 0,
        .sequence = true,
        .names = names->count ? names : NULL,
    };
    return true;
}

static bool read_defaults(const struct kernel_call *call, int input, struct half *context,
                          struct error *err)
{
    for (int i = 0; i < context->dense; i++) {
        struct feature_key *key = &context->keys.keys[context->sparse + i];
        key->default_value = kernel_in(call, input + i);
        if (!kernel_feature_check_default(key, i, err))
            return false;
    }
    return true;
}

/* --- outputs, in the order of the signatures --- */

/* One tensor of each of `count` keys' outputs, which lie `step` bytes apart. */
static void take(struct kernel_call *call, int *index, struct tensor *first, int count,
                 size_t step)
{
    for (int i = 0; i < count; i++)
        kernel_output_take(call, (*index)++,
                           (struct tensor *)((char *)first + (size_t)i * step));
}

static void take_context(struct kernel_call *call, int *index, const struct half *half,
                         struct example_output *out)
{
    struct example_output *dense = out + half->sparse, *ragged = dense + half->dense;
    take(call, index, &out->indices, half->sparse, sizeof(*out));
    take(call, index, &out->values, half->sparse, sizeof(*out));
    take(call, index, &out->shape, half->sparse, sizeof(*out));
    take(call, index, &dense->values, half->dense, sizeof(*out));
    take(call, index, &ragged->values, half->ragged, sizeof(*out));
    take(call, index, &ragged->indices, half->ragged, sizeof(*out));
}

static void take_lists(struct kernel_call *call, int *index, const struct half *half,
                       struct sequence_output *out, bool lengths)
{
    struct sequence_output *dense = out + half->sparse, *ragged = dense + half->dense;
    take(call, index, &out->indices, half->sparse, sizeof(*out));
    take(call, index, &out->values, half->sparse, sizeof(*out));
    take(call, index, &out->shape, half->sparse, sizeof(*out));
    take(call, index, &dense->values, half->dense, sizeof(*out));
    if (lengths)
        take(call, index, &dense->lengths, half->dense, sizeof(*out));
    for (int i = 0; i < half->dense; i++)
        tensor_release(&dense[i].lengths);
    take(call, index, &ragged->values, half->ragged, sizeof(*out));
    take(call, index, &ragged->outer, half->ragged, sizeof(*out));
    take(call, index, &ragged->inner, half->ragged, sizeof(*out));
}

/* Of one example the splits that part examples are scalars, which TensorFlow leaves undefined.
 */
static bool scalar_splits(const struct half *half, struct example_output *context,
                          struct error *err)
{
    struct example_output *ragged = context + half->sparse + half->dense;
    for (int i = 0; i < half->ragged; i++) {
        enum dtype dtype = ragged[i].indices.dtype;
        tensor_release(&ragged[i].indices);
        if (!tensor_init(&ragged[i].indices, dtype, &SHAPE_SCALAR, err))
            return false;
        tensor_set_number(&ragged[i].indices, 0, 0);
    }
    return true;
}

static bool parse_all(struct kernel_call *call, struct sequence *seq, bool lengths,
                      struct error *err)
{
    int index = 0;
    struct example_output *context =
        alloc_array((size_t)seq->context.keys.count, sizeof(*context));
    struct sequence_output *lists = alloc_array((size_t)seq->lists.keys.count, sizeof(*lists));
    bool parsed = kernel_example_parse(&seq->context.keys, &seq->batch, context, err);
    bool ok = parsed && (!seq->batch.single || scalar_splits(&seq->context, context, err)) &&
              kernel_sequence_parse(&seq->lists.keys, seq->optional, &seq->batch, lists, err);
    if (ok) {
        take_context(call, &index, &seq->context, context);
        take_lists(call, &index, &seq->lists, lists, lengths);
    } else if (parsed) {
        kernel_example_release(context, seq->context.keys.count);
    }
    free(context);
    free(lists);
    return ok;
}

/* --- the three ops --- */

static bool begin(struct sequence *seq, const struct node *node, struct error *err)
{
    bool ok = half_init(&seq->context, "context", node, err);
    ok = half_init(&seq->lists, "feature_list", node, err) && ok;
    seq->optional = alloc_array((size_t)seq->lists.keys.count, sizeof(*seq->optional));
    return ok;
}

static bool index_keys(struct sequence *seq, struct error *err)
{
    return kernel_feature_index(&seq->context.keys, err) &&
           kernel_feature_index(&seq->lists.keys, err);
}

static void release(struct sequence *seq)
{
    kernel_feature_keys_release(&seq->context.keys);
    kernel_feature_keys_release(&seq->lists.keys);
    free(seq->optional);
}

/* Six vectors of keys behind the names, in the order of the keys. */
static bool keys_v2(struct kernel_call *call, struct sequence *seq, struct error *err)
{
    struct half *halves[] = {&seq->context, &seq->lists};
    for (int h = 0; h < 2; h++) {
        struct feature_key *sparse = halves[h]->keys.keys, *dense = sparse + halves[h]->sparse,
                           *ragged = dense + halves[h]->dense;
        int input = 2 + 3 * h;
        if (!name_by_vector(kernel_in(call, input), sparse, halves[h]->sparse, err) ||
            !name_by_vector(kernel_in(call, input + 1), dense, halves[h]->dense, err) ||
            !name_by_vector(kernel_in(call, input + 2), ragged, halves[h]->ragged, err))
            return false;
    }
    const struct tensor *missing = kernel_in(call, 8);
    if (missing->count != seq->lists.dense)
        return fail(err, INVALID,
                    "Expected len(feature_list_dense_missing_assumed_empty) == %d, got %lld",
                    seq->lists.dense, (long long)missing->count);
    for (int i = 0; i < seq->lists.dense; i++)
        seq->optional[seq->lists.sparse + i] = ((const bool *)missing->data)[i];
    return index_keys(seq, err);
}

static bool sequence_v2_run(struct kernel_call *call, struct error *err)
{
    struct sequence seq = {0};
    bool ok = begin(&seq, call->node, err) &&
              read_batch(call, 1, true, true, &seq.batch, err) && keys_v2(call, &seq, err) &&
              read_defaults(call, 9, &seq.context, err) && parse_all(call, &seq, true, err);
    release(&seq);
    return ok;
}

static bool keys_v1(struct kernel_call *call, struct sequence *seq, struct error *err)
{
    const struct node *node = call->node;
    struct half *context = &seq->context, *lists = &seq->lists;
    const struct attr *missing = node_attr(node, "feature_list_dense_missing_assumed_empty");
    if (!name_by_attr(node, "context_sparse_keys", context->keys.keys, context->sparse, err) ||
        !name_by_attr(node, "context_dense_keys", context->keys.keys + context->sparse,
                      context->dense, err) ||
        !name_by_attr(node, "feature_list_sparse_keys", lists->keys.keys, lists->sparse, err) ||
        !name_by_attr(node, "feature_list_dense_keys", lists->keys.keys + lists->sparse,
                      lists->dense, err) ||
        !index_keys(seq, err))
        return false;
    for (int i = 0; i < length(missing); i++)
        if (!set_optional(seq, missing->strings[i].data, missing->strings[i].size, err))
            return false;
    return true;
}

static bool sequence_run(struct kernel_call *call, struct error *err)
{
    struct sequence seq = {0};
    bool ok = begin(&seq, call->node, err) &&
              read_batch(call, 1, true, false, &seq.batch, err) && keys_v1(call, &seq, err) &&
              read_defaults(call, 2, &seq.context, err) && parse_all(call, &seq, true, err);
    release(&seq);
    return ok;
}

/* Inputs: serialized, the optional lists, scalars of keys, defaults, a name. */
static bool keys_single(struct kernel_call *call, struct sequence *seq, struct error *err)
{
    struct half *context = &seq->context, *lists = &seq->lists;
    const struct tensor *missing = kernel_in(call, 1);
    int input = 2;
    if (!name_by_scalars(call, input, context->keys.keys, context->sparse, err) ||
        !name_by_scalars(call, input += context->sparse, context->keys.keys + context->sparse,
                         context->dense, err) ||
        !name_by_scalars(call, input += context->dense, lists->keys.keys, lists->sparse, err) ||
        !name_by_scalars(call, input += lists->sparse, lists->keys.keys + lists->sparse,
                         lists->dense, err) ||
        !index_keys(seq, err))
        return false;
    for (int64_t i = 0; i < missing->count; i++)
        if (!set_optional(seq, tensor_strings(missing)[i].data, tensor_strings(missing)[i].size,
                          err))
            return false;
    return read_defaults(call, input + lists->dense, context, err);
}

static bool single_run(struct kernel_call *call, struct error *err)
{
    struct sequence seq = {0};
    bool ok = begin(&seq, call->node, err) &&
              read_batch(call, call->in_count - 1, false, true, &seq.batch, err) &&
              keys_single(call, &seq, err) && parse_all(call, &seq, false, err);
    release(&seq);
    return ok;
}

const struct kernel kernel_parse_sequence_example = {
    .op = "ParseSequenceExample", .device = CPU, .run = sequence_run};
const struct kernel kernel_parse_sequence_example_v2 = {
    .op = "ParseSequenceExampleV2", .device = CPU, .run = sequence_v2_run};
const struct kernel kernel_parse_single_sequence_example = {
    .op = "ParseSingleSequenceExample", .device = CPU, .run = single_run};
