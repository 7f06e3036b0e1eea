/*
 * parse_examples.c - ParseExampleDataset and V2: batches of serialized tf.Examples become their
 * features, which stand in the order of their keys.
 */

#include "base/alloc.h"
#include "kernels/data/ragged.h"
#include "kernels/data/sparse.h"
#include "kernels/io/parse_example.h"

struct parsed {
    struct dataset dataset;
    struct feature_keys keys; /* sparse, dense, ragged, as the attributes list them */
    char **names;             /* of the keys; no reference to the graph is kept */
    struct tensor *defaults;  /* of the dense ones */
    int *places;              /* of the keys, in an element */
    int sparse, dense, ragged;
};

static void parsed_release(struct dataset *dataset)
{
    struct parsed *parsed = (struct parsed *)dataset;
    for (int i = 0; parsed->names && i < parsed->keys.count; i++)
        free(parsed->names[i]);
    kernel_row_release(parsed->defaults, parsed->dense);
    free(parsed->defaults);
    free(parsed->names);
    free(parsed->places);
    kernel_feature_keys_release(&parsed->keys);
}

/* What one key gives becomes one component. */
static bool put(const struct feature_key *key, struct example_output *from, struct tensor *to,
                struct error *err)
{
    switch (key->kind) {
    case FEATURE_SPARSE:
        return kernel_sparse_element(to, &from->indices, &from->values, &from->shape, err);
    case FEATURE_RAGGED:
        return tensor_init(to, VARIANT, &SHAPE_SCALAR, err) &&
               kernel_ragged_hold(to, 0, &from->indices, 1, &from->values, err);
    default:
        tensor_share(to, &from->values);
        return true;
    }
}

static bool parse(const struct parsed *parsed, const struct tensor *serialized,
                  struct tensor *out, struct error *err)
{
    int count = parsed->keys.count;
    if (serialized->dtype != STRING || serialized->shape.rank != 1)
        return fail(err, INVALID,
                    "ParseExampleDataset: its input's elements must be vectors of strings");
    const struct example_batch batch = {.serialized = tensor_strings(serialized),
                                        .count = serialized->count};
    struct example_output *found = alloc_array((size_t)count, sizeof(*found));
    bool ok = kernel_example_parse(&parsed->keys, &batch, found, err);
    for (int i = 0; ok && i < count; i++)
        ok = put(&parsed->keys.keys[i], &found[i], &out[parsed->places[i]], err);
    kernel_example_release(found, count);
    free(found);
    return ok;
}

static bool parsed_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct tensor serialized = {0};
    if (!kernel_iterator_next(it->input, &serialized, end, err) || *end)
        return *end;
    bool ok = parse((const struct parsed *)it->dataset, &serialized, out, err);
    tensor_release(&serialized);
    return ok;
}

static int64_t parsed_cardinality(const struct dataset *dataset)
{
    return kernel_dataset_cardinality(dataset->inputs[0]);
}

static const struct dataset_type parsed_type = {
    .name = "ParseExample",
    .dataset_size = sizeof(struct parsed),
    .iterator_size = sizeof(struct iterator),
    .next = parsed_next,
    .cardinality = parsed_cardinality,
    .release = parsed_release,
};

/* --- what was asked for --- */

static int attr_length(const struct node *node, const char *name)
{
    const struct attr *attr = node_attr(node, name);
    return attr ? attr->count : 0;
}

static bool same_length(const struct node *node, const char *keys, const char *of,
                        struct error *err)
{
    return attr_length(node, keys) == attr_length(node, of) ||
           fail(err, INVALID, "node '%s': %s has %d elements, %s has %d", node->name, keys,
                attr_length(node, keys), of, attr_length(node, of));
}

/* Copies the names of the keys of one kind, which begin at `first`. */
static void name_keys(struct parsed *parsed, const struct node *node, const char *attr_name,
                      int first)
{
    const struct attr *attr = node_attr(node, attr_name);
    for (int i = 0; attr && i < attr->count; i++) {
        const struct attr_bytes *name = &attr->strings[i];
        char *copy = alloc_bytes(name->size + 1);
        memcpy(copy, name->data, name->size);
        parsed->names[first + i] = copy;
        parsed->keys.keys[first + i].name = copy;
        parsed->keys.keys[first + i].name_size = name->size;
    }
}

static bool describe_keys(struct parsed *parsed, const struct kernel_call *call,
                          struct error *err)
{
    const struct node *node = call->node;
    struct feature_key *key = parsed->keys.keys;
    for (int i = 0; i < parsed->sparse; i++, key++) {
        key->kind = FEATURE_SPARSE;
        key->dtype = (enum dtype)node_attr(node, "sparse_types")->types[i];
    }
    for (int i = 0; i < parsed->dense; i++, key++) {
        tensor_share(&parsed->defaults[i], kernel_in(call, 2 + i));
        key->kind = FEATURE_DENSE;
        key->dtype = (enum dtype)node_attr(node, "Tdense")->types[i];
        key->default_value = &parsed->defaults[i];
        if (!kernel_feature_set_shape(key, &node_attr(node, "dense_shapes")->shapes[i], err) ||
            !kernel_feature_check_default(key, i, err))
            return false;
    }
    for (int i = 0; i < parsed->ragged; i++, key++) {
        key->kind = FEATURE_RAGGED;
        key->dtype = (enum dtype)node_attr(node, "ragged_value_types")->types[i];
        key->splits = (enum dtype)node_attr(node, "ragged_split_types")->types[i];
    }
    return kernel_feature_index(&parsed->keys, err);
}

static bool comes_before(const struct feature_key *a, const struct feature_key *b)
{
    size_t size = a->name_size < b->name_size ? a->name_size : b->name_size;
    int order = size ? memcmp(a->name, b->name, size) : 0;
    return order < 0 || (order == 0 && a->name_size < b->name_size);
}

/* Each key's place among all, and that the declared type there can hold it. */
static bool place_keys(struct parsed *parsed, const struct node *node, struct error *err)
{
    const struct feature_key *keys = parsed->keys.keys;
    if (parsed->dataset.width != parsed->keys.count)
        return fail(err, INVALID, "node '%s': %d keys for elements of %d components",
                    node->name, parsed->keys.count, parsed->dataset.width);
    for (int i = 0; i < parsed->keys.count; i++) {
        for (int k = 0; k < parsed->keys.count; k++)
            parsed->places[i] += comes_before(&keys[k], &keys[i]);
        enum dtype wanted = keys[i].kind == FEATURE_DENSE ? keys[i].dtype : VARIANT;
        enum dtype declared = parsed->dataset.types[parsed->places[i]];
        if (declared != wanted)
            return fail(err, INVALID, "node '%s': feature '%s' is %s, output_types say %s",
                        node->name, parsed->names[i], dtype_name(wanted), dtype_name(declared));
    }
    return true;
}

static bool parsed_run(struct kernel_call *call, struct error *err)
{
    const struct node *node = call->node;
    if (!same_length(node, "sparse_keys", "sparse_types", err) ||
        !same_length(node, "dense_keys", "Tdense", err) ||
        !same_length(node, "dense_keys", "dense_shapes", err) ||
        !same_length(node, "ragged_keys", "ragged_value_types", err) ||
        !same_length(node, "ragged_keys", "ragged_split_types", err) ||
        !kernel_dataset_parallel(call, 1, err))
        return false;
    struct parsed *parsed = (struct parsed *)kernel_dataset_make(call, &parsed_type, 0, 1, err);
    if (!parsed)
        return false;
    parsed->sparse = attr_length(node, "sparse_keys");
    parsed->dense = attr_length(node, "dense_keys");
    parsed->ragged = attr_length(node, "ragged_keys");
    int count = parsed->sparse + parsed->dense + parsed->ragged;
    kernel_feature_keys_init(&parsed->keys, count);
    parsed->names = alloc_array((size_t)count, sizeof(*parsed->names));
    parsed->places = alloc_array((size_t)count, sizeof(*parsed->places));
    parsed->defaults = kernel_row_new(parsed->dense);
    name_keys(parsed, node, "sparse_keys", 0);
    name_keys(parsed, node, "dense_keys", parsed->sparse);
    name_keys(parsed, node, "ragged_keys", parsed->sparse + parsed->dense);
    if (!describe_keys(parsed, call, err) || !place_keys(parsed, node, err)) {
        resource_unref(&parsed->dataset.resource);
        return false;
    }
    return kernel_dataset_output(call, &parsed->dataset, err);
}

const struct kernel kernel_parse_example_dataset = {
    .op = "ParseExampleDataset", .device = CPU, .run = parsed_run};
const struct kernel kernel_parse_example_dataset_v2 = {
    .op = "ParseExampleDatasetV2", .device = CPU, .run = parsed_run};
const struct kernel kernel_experimental_parse_example_dataset = {
    .op = "ExperimentalParseExampleDataset", .device = CPU, .run = parsed_run};
