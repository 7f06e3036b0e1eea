/*
 * iterator_kernel.c - nodes that make iterators, give them a dataset, take elements from them
 * and name them.
 */

#include "base/alloc.h"
#include "base/str.h"
#include "kernels/data/iterator_handle.h"
#include "kernels/data/optional.h"
#include "kernels/state/handle.h"
#include "runtime/function.h"
#include "runtime/io/wire.h"

/* --- made --- */

static bool signature_read(const struct node *node, void **spec, struct error *err)
{
    struct signature signature;
    if (!kernel_dataset_attrs(node, &signature, err))
        return false;
    struct signature *kept = alloc_bytes(sizeof(*kept));
    *kept = signature; /* the node's, which lives as long */
    *spec = kept;
    return true;
}

static struct resource *iterator_make(const void *spec, const char *name,
                                      struct kernel_call *call, struct error *err)
{
    (void)name;
    (void)call;
    (void)err;
    return kernel_iterator_handle_resource(kernel_iterator_handle_new(spec));
}

static bool iterator_matches(const struct resource *resource, const void *spec,
                             const struct node *node, struct error *err)
{
    (void)node;
    return kernel_iterator_handle_suits((const struct handle_iterator *)resource, spec, err);
}

static const struct handle_class iterator_class = {
    .kind = ITERATOR_KIND,
    .read = signature_read,
    .free = free,
    .make = iterator_make,
    .matches = iterator_matches,
};

HANDLE_KERNEL(iterator, "Iterator", iterator_class);
HANDLE_KERNEL(iterator_v2, "IteratorV2", iterator_class);

/* A new one for each run; output 1, where there is one, keeps it alive. */
static bool anonymous_run(struct kernel_call *call, struct error *err)
{
    struct signature signature;
    if (!kernel_dataset_attrs(call->node, &signature, err))
        return false;
    struct resource *resource =
        kernel_iterator_handle_resource(kernel_iterator_handle_new(&signature));
    bool ok = kernel_output_resource(call, 0, resource, "", "AnonymousIterator", err) &&
              (call->node->outputs_count < 2 ||
               kernel_output_resource(call, 1, resource, NULL, NULL, err));
    resource_unref(resource);
    return ok;
}

/* --- given a dataset --- */

static struct handle_iterator *handle_in(struct kernel_call *call, int input, struct error *err)
{
    return (struct handle_iterator *)kernel_resource(call, input, ITERATOR_KIND, err);
}

static void unref(struct handle_iterator *handle)
{
    resource_unref(kernel_iterator_handle_resource(handle));
}

static bool make_iterator_run(struct kernel_call *call, struct error *err)
{
    struct dataset *dataset = kernel_dataset_in(call, 0, err);
    struct handle_iterator *handle = dataset ? handle_in(call, 1, err) : NULL;
    if (!handle)
        return false;
    bool ok = kernel_iterator_handle_set(handle, dataset, kernel_cancel(call), err);
    unref(handle);
    return ok;
}

static bool delete_run(struct kernel_call *call, struct error *err)
{
    struct handle_iterator *handle = handle_in(call, 0, err);
    if (!handle)
        return false;
    bool ok = kernel_iterator_handle_clear(handle, kernel_cancel(call), err);
    unref(handle);
    return ok;
}

/* The dataset that the factory makes. */
static struct dataset *factory_run(void *arg, struct error *err)
{
    struct kernel_call *call = arg;
    const struct attr *attr = node_attr(call->node, "dataset_factory");
    struct function *function = function_get(call, &attr->funcs[0], err);
    struct tensor made = {0};
    struct dataset *dataset = NULL;
    if (function && (function_args_count(function) || function_results_count(function) != 1))
        fail(err, INVALID,
             "The `dataset_factory` function must accept no arguments and return one dataset");
    else if (function && function_run(function, NULL, 0, &made, kernel_cancel(call), err))
        dataset = kernel_dataset_of(&made, err);
    if (dataset)
        resource_ref(&dataset->resource);
    tensor_release(&made);
    function_unref(function);
    return dataset;
}

static bool one_shot_run(struct kernel_call *call, struct error *err)
{
    if (!kernel_handle_run(call, err))
        return false;
    struct resource_handle *handle = call->out[0].data;
    return kernel_iterator_handle_set_once((struct handle_iterator *)handle->resource,
                                           factory_run, call, kernel_cancel(call), err);
}

static bool one_shot_prepare(const struct node *node, void **state, struct error *err)
{
    return kernel_handle_prepare(&iterator_class, node, state, err);
}

/* --- asked --- */

static bool next_run(struct kernel_call *call, struct error *err)
{
    struct signature signature;
    struct handle_iterator *handle = handle_in(call, 0, err);
    struct tensor *row = NULL;
    int width;
    bool end;
    if (!handle)
        return false;
    bool ok = kernel_dataset_attrs(call->node, &signature, err) &&
              kernel_iterator_handle_next(handle, kernel_cancel(call), &row, &width, &end, err);
    unref(handle);
    if (!ok)
        return false;
    if (end)
        ok = fail(err, OUT_OF_RANGE, "End of sequence");
    else
        ok = kernel_row_suits(row, width, &signature, err);
    for (int i = 0; ok && i < width; i++)
        kernel_output_take(call, i, &row[i]);
    if (!ok && !end)
        kernel_row_release(row, width);
    free(row);
    return ok;
}

static bool next_optional_run(struct kernel_call *call, struct error *err)
{
    struct signature signature;
    struct handle_iterator *handle = handle_in(call, 0, err);
    struct tensor *row = NULL;
    int width;
    bool end;
    if (!handle)
        return false;
    bool ok = kernel_dataset_attrs(call->node, &signature, err) &&
              kernel_iterator_handle_next(handle, kernel_cancel(call), &row, &width, &end, err);
    unref(handle);
    if (!ok)
        return false;
    struct optional *optional = kernel_optional_new(end ? -1 : width);
    if (!end)
        memcpy(optional->row, row, (size_t)width * sizeof(*row));
    free(row);
    ok = (end || kernel_row_suits(optional->row, width, &signature, err)) &&
         kernel_output_resource(call, 0, &optional->resource, NULL, NULL, err);
    resource_unref(&optional->resource);
    return ok;
}

/* --- named: fields 2 and 3 of TensorFlow's ResourceHandleProto --- */

static void add_field(struct str *out, int field, const char *text)
{
    size_t size = strlen(text);
    str_add_char(out, (char)WIRE_TAG(field, WIRE_BYTES));
    for (size_t rest = size;; rest >>= 7) {
        str_add_char(out, (char)(rest >= 0x80 ? rest | 0x80 : rest));
        if (rest < 0x80)
            break;
    }
    str_add_bytes(out, text, size);
}

static bool to_string_run(struct kernel_call *call, struct error *err)
{
    struct handle_iterator *iterator = handle_in(call, 0, err);
    if (!iterator)
        return false;
    unref(iterator);
    struct tensor *out = kernel_output(call, 0, &SHAPE_SCALAR, err);
    if (!out)
        return false;
    const struct resource_handle *handle = kernel_in(call, 0)->data;
    struct str text = {0};
    add_field(&text, 2, handle->container ? handle->container : "");
    add_field(&text, 3, handle->name ? handle->name : "");
    tensor_set_string(out, 0, text.data, text.size);
    str_release(&text);
    return true;
}

static bool read_names(const struct tensor_string *text, struct wire *container,
                       struct wire *name)
{
    struct wire wire = wire_of(text->data, text->size);
    *container = *name = (struct wire){wire.at, wire.at};
    while (wire.at < wire.end) {
        uint64_t tag;
        if (!wire_varint(&wire, &tag))
            return false;
        bool ok = tag == WIRE_TAG(2, WIRE_BYTES)   ? wire_piece(&wire, container)
                  : tag == WIRE_TAG(3, WIRE_BYTES) ? wire_piece(&wire, name)
                                                   : wire_skip(&wire, tag);
        if (!ok)
            return false;
    }
    return true;
}

static bool find_output(struct kernel_call *call, const char *container, const char *name,
                        struct error *err)
{
    struct signature signature;
    struct resource *resource = resources_get(call->resources, container, ITERATOR_KIND, name);
    if (!resource)
        return fail(err, NOT_FOUND, "Resource %s/%s/%s does not exist.", container, name,
                    ITERATOR_KIND);
    bool ok =
        kernel_dataset_attrs(call->node, &signature, err) &&
        kernel_iterator_handle_suits((struct handle_iterator *)resource, &signature, err) &&
        kernel_output_resource(call, 0, resource, container, name, err);
    resource_unref(resource);
    return ok;
}

static bool from_string_run(struct kernel_call *call, struct error *err)
{
    struct wire container, name;
    const struct tensor *text = kernel_in(call, 0);
    if (text->shape.rank != 0)
        return fail(err, INVALID, "string_handle must be a scalar");
    if (!read_names(tensor_strings(text), &container, &name))
        return fail(err, INVALID, "Could not parse string_handle as a valid ResourceHandle");
    char *a = alloc_text_n((const char *)container.at, wire_left(&container));
    char *b = alloc_text_n((const char *)name.at, wire_left(&name));
    bool ok = find_output(call, a, b, err);
    free(a);
    free(b);
    return ok;
}

#define ITERATOR(name_, run_)                                                                  \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_anonymous_iterator = ITERATOR("AnonymousIterator", anonymous_run);
const struct kernel kernel_anonymous_iterator_v2 =
    ITERATOR("AnonymousIteratorV2", anonymous_run);
const struct kernel kernel_anonymous_iterator_v3 =
    ITERATOR("AnonymousIteratorV3", anonymous_run);
const struct kernel kernel_delete_iterator = ITERATOR("DeleteIterator", delete_run);
const struct kernel kernel_make_iterator = ITERATOR("MakeIterator", make_iterator_run);
const struct kernel kernel_one_shot_iterator = {.op = "OneShotIterator",
                                                .device = CPU,
                                                .prepare = one_shot_prepare,
                                                .release = kernel_handle_release,
                                                .run = one_shot_run};
const struct kernel kernel_iterator_get_next = ITERATOR("IteratorGetNext", next_run);
const struct kernel kernel_iterator_get_next_sync = ITERATOR("IteratorGetNextSync", next_run);
const struct kernel kernel_iterator_get_next_as_optional =
    ITERATOR("IteratorGetNextAsOptional", next_optional_run);
const struct kernel kernel_iterator_to_string_handle =
    ITERATOR("IteratorToStringHandle", to_string_run);
const struct kernel kernel_iterator_from_string_handle =
    ITERATOR("IteratorFromStringHandle", from_string_run);
const struct kernel kernel_iterator_from_string_handle_v2 =
    ITERATOR("IteratorFromStringHandleV2", from_string_run);
