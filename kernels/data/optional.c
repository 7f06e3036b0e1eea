/* optional.c - a row of tensors, or none, in a VARIANT scalar. */

#include "kernels/data/optional.h"
#include "base/alloc.h"

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

static bool from_value_run(struct kernel_call *call, struct error *err)
{
    struct optional *optional = kernel_optional_new(call->in_count);
    for (int i = 0; i < call->in_count; i++) {
        int below = depth_of(kernel_in(call, i));
        tensor_share(&optional->row[i], kernel_in(call, i));
        if (below + 1 > optional->depth)
            optional->depth = below + 1;
    }
    if (optional->depth <= DATASET_DEPTH_MAX)
        return output(call, optional, err);
    resource_unref(&optional->resource);
    return fail(err, EXHAUSTED, "more than %d optionals within each other", DATASET_DEPTH_MAX);
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
