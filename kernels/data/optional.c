/* optional.c - a row of tensors, or none, in a VARIANT scalar. */

#include "kernels/data/optional.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "runtime/variant.h"

static void optional_destroy(struct resource *resource)
{
    struct optional *optional = (struct optional *)resource;
    kernel_row_release(optional->row, optional->width);
    free(optional->row);
    free(optional);
}

struct optional *kernel_optional_new(int width)
{
    struct optional *optional = alloc_bytes(sizeof(*optional));
    optional->resource =
        (struct resource){.kind = OPTIONAL_KIND, .references = 1, .destroy = optional_destroy};
    optional->width = width;
    optional->row = width < 0 ? NULL : kernel_row_new(width);
    return optional;
}

static bool output(struct kernel_call *call, struct optional *optional, struct error *err)
{
    bool ok = kernel_output_resource(call, 0, &optional->resource, NULL, NULL, err);
    resource_unref(&optional->resource);
    return ok;
}

/* Optionals within each other are as deep as datasets may be. */
static int depth_of(const struct tensor *tensor)
{
    const struct resource_handle *handles = tensor->data;
    int depth = kernel_dataset_depth(tensor);
    for (int64_t i = 0; tensor->dtype == VARIANT && i < tensor->count; i++) {
        const struct resource *resource = handles[i].resource;
        if (resource && strcmp(resource->kind, OPTIONAL_KIND) == 0 &&
            ((const struct optional *)resource)->depth > depth)
            depth = ((const struct optional *)resource)->depth;
    }
    return depth;
}

/* Shares the tensors; fails with EXHAUSTED when that is too deep. */
static bool set_row(struct optional *optional, const struct tensor *tensors, int count,
                    struct error *err)
{
    for (int i = 0; i < count; i++) {
        int below = depth_of(&tensors[i]);
        tensor_share(&optional->row[i], &tensors[i]);
        if (below + 1 > optional->depth)
            optional->depth = below + 1;
    }
    return optional->depth <= DATASET_DEPTH_MAX ||
           fail(err, EXHAUSTED, "more than %d optionals within each other", DATASET_DEPTH_MAX);
}

static bool from_value_run(struct kernel_call *call, struct error *err)
{
    int count = call->in_count;
    struct tensor *values = alloc_array((size_t)count, sizeof(*values));
    for (int i = 0; i < count; i++)
        values[i] = *kernel_in(call, i); /* borrowed */
    struct optional *optional = kernel_optional_new(count);
    bool ok = set_row(optional, values, count, err);
    free(values);
    if (ok)
        return output(call, optional, err);
    resource_unref(&optional->resource);
    return false;
}

static bool none_run(struct kernel_call *call, struct error *err)
{
    return output(call, kernel_optional_new(-1), err);
}

static struct optional *optional_in(struct kernel_call *call, struct error *err)
{
    if (kernel_in(call, 0)->shape.rank != 0)
        return fail_null(err, INVALID, "Input to OptionalGetValue must be a scalar variant");
    return (struct optional *)kernel_variant(kernel_in(call, 0), 0, OPTIONAL_KIND, err);
}

static bool has_value_run(struct kernel_call *call, struct error *err)
{
    struct optional *optional = optional_in(call, err);
    struct tensor *out = optional ? kernel_output(call, 0, &SHAPE_SCALAR, err) : NULL;
    if (!out)
        return false;
    *(bool *)out->data = optional->row != NULL;
    return true;
}

static bool get_value_run(struct kernel_call *call, struct error *err)
{
    struct signature signature;
    struct optional *optional = optional_in(call, err);
    if (!optional || !kernel_dataset_attrs(call->node, &signature, err))
        return false;
    if (!optional->row)
        return fail(err, INVALID, "The given optional does not have a value.");
    if (!kernel_row_suits(optional->row, optional->width, &signature, err))
        return false;
    for (int i = 0; i < optional->width; i++)
        kernel_output_share(call, i, &optional->row[i], &optional->row[i].shape);
    return true;
}

const struct kernel kernel_optional_from_value = {
    .op = "OptionalFromValue", .device = CPU, .run = from_value_run};
const struct kernel kernel_optional_none = {
    .op = "OptionalNone", .device = CPU, .run = none_run};
const struct kernel kernel_optional_has_value = {
    .op = "OptionalHasValue", .device = CPU, .run = has_value_run};
const struct kernel kernel_optional_get_value = {
    .op = "OptionalGetValue", .device = CPU, .run = get_value_run};

/* --- as TensorFlow sends them to other processes: the metadata says whether there is a value
 * ---
 */

static int optional_describe(const struct resource *resource, struct str *metadata,
                             const struct tensor ***tensors)
{
    const struct optional *optional = (const struct optional *)resource;
    int count = optional->row ? optional->width : 0;
    *tensors = alloc_array((size_t)count, sizeof(**tensors));
    for (int i = 0; i < count; i++)
        (*tensors)[i] = &optional->row[i];
    str_add_char(metadata, optional->row != NULL);
    return count;
}

static struct resource *optional_make(const void *metadata, size_t size,
                                      const struct tensor *tensors, int count,
                                      struct error *err)
{
    if (size != 1 || (!*(const char *)metadata && count))
        return (struct resource *)fail_null(err, INVALID,
                                            "an optional of %d tensors has metadata of %zu "
                                            "bytes",
                                            count, size);
    struct optional *optional = kernel_optional_new(*(const char *)metadata ? count : -1);
    if (set_row(optional, tensors, count, err))
        return &optional->resource;
    resource_unref(&optional->resource);
    return NULL;
}

const struct variant_kind optional_send_kind = {.kind = OPTIONAL_KIND,
                                                .type_name = "tensorflow::data::Optional",
                                                .describe = optional_describe,
                                                .make = optional_make};
