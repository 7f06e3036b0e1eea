/* dataset.c - datasets as objects: made, held in tensors, given back. */

#include "kernels/data/dataset.h"

#include "base/alloc.h"

static void dataset_destroy(struct resource *resource)
{
    struct dataset *dataset = (struct dataset *)resource;
    if (dataset->type->release)
        dataset->type->release(dataset);
    for (int i = 0; i < dataset->inputs_count; i++)
        resource_unref(&dataset->inputs[i]->resource);
    free(dataset->inputs);
    free(dataset->types);
    free(dataset->shapes);
    free(dataset);
}

bool kernel_dataset_attrs(const struct node *node, struct signature *signature,
                          struct error *err)
{
    const struct attr *types = node_attr(node, "output_types");
    const struct attr *shapes = node_attr(node, "output_shapes");
    if (!types)
        types = node_attr(node, "Toutput_types");
    *signature = (struct signature){.width = types ? types->count : 0,
                                    .types = types ? types->types : NULL};
    if (!shapes)
        return true;
    signature->shapes = shapes->shapes;
    return shapes->count == signature->width ||
           fail(err, INVALID,
                "node '%s': output_types and output_shapes must be same length (%d and %d)",
                node->name, signature->width, shapes->count);
}

static bool set_depth(struct dataset *dataset, int below, struct error *err)
{
    if (below + 1 > dataset->depth)
        dataset->depth = below + 1;
    return dataset->depth <= DATASET_DEPTH_MAX ||
           fail(err, EXHAUSTED, "more than %d datasets on top of each other",
                DATASET_DEPTH_MAX);
}

struct dataset *kernel_dataset_new(const struct dataset_type *type,
                                   const struct signature *signature,
                                   struct dataset *const *inputs, int inputs_count,
                                   struct error *err)
{
    struct dataset *dataset = alloc_bytes(type->dataset_size);
    int width = signature->width;
    dataset->resource =
        (struct resource){.kind = DATASET_KIND, .references = 1, .destroy = dataset_destroy};
    dataset->type = type;
    dataset->depth = 1;
    dataset->width = width;
    dataset->types = alloc_array((size_t)width, sizeof(*dataset->types));
    dataset->shapes = alloc_array((size_t)width, sizeof(*dataset->shapes));
    for (int i = 0; i < width; i++) {
        dataset->types[i] = (enum dtype)signature->types[i];
        dataset->shapes[i] = signature->shapes ? signature->shapes[i] : SHAPE_UNKNOWN;
    }
    dataset->inputs = alloc_array((size_t)inputs_count, sizeof(*dataset->inputs));
    dataset->inputs_count = inputs_count;
    bool ok = true;
    for (int i = 0; i < inputs_count; i++) {
        resource_ref(&inputs[i]->resource);
        dataset->inputs[i] = inputs[i];
        ok = ok && set_depth(dataset, inputs[i]->depth, err);
    }
    if (ok)
        return dataset;
    resource_unref(&dataset->resource);
    return NULL;
}

struct dataset *kernel_dataset_make(struct kernel_call *call, const struct dataset_type *type,
                                    int first, int count, struct error *err)
{
    struct signature signature;
    if (!kernel_dataset_attrs(call->node, &signature, err))
        return NULL;
    struct dataset **inputs = alloc_array((size_t)count, sizeof(struct dataset *));
    struct dataset *dataset = NULL;
    int i = 0;
    while (i < count && (inputs[i] = kernel_dataset_in(call, first + i, err)))
        i++;
    if (i == count)
        dataset = kernel_dataset_new(type, &signature, inputs, count, err);
    free(inputs);
    return dataset;
}

struct dataset *kernel_dataset_wrap(const struct dataset_type *type, struct dataset *input,
                                    struct error *err)
{
    struct signature signature = {input->width, (const int *)input->types, input->shapes};
    static_assert(sizeof(enum dtype) == sizeof(int), "types are numbers");
    return kernel_dataset_new(type, &signature, &input, 1, err);
}

struct dataset *kernel_dataset_of(const struct tensor *tensor, struct error *err)
{
    if (tensor->dtype != VARIANT || tensor->shape.rank != 0)
        return fail_null(err, INVALID, "Dataset tensor must be a scalar of dtype DT_VARIANT.");
    return (struct dataset *)kernel_variant(tensor, 0, DATASET_KIND, err);
}

struct dataset *kernel_dataset_in(struct kernel_call *call, int input, struct error *err)
{
    return kernel_dataset_of(kernel_in(call, input), err);
}

bool kernel_dataset_output(struct kernel_call *call, struct dataset *dataset, struct error *err)
{
    bool ok = dataset && kernel_output_resource(call, 0, &dataset->resource, NULL, NULL, err);
    if (dataset)
        resource_unref(&dataset->resource);
    return ok;
}

bool kernel_dataset_tensor(struct tensor *out, struct dataset *dataset, struct error *err)
{
    if (!tensor_init(out, VARIANT, &SHAPE_SCALAR, err))
        return false;
    resource_ref(&dataset->resource);
    ((struct resource_handle *)out->data)->resource = &dataset->resource;
    return true;
}

int kernel_dataset_depth(const struct tensor *tensor)
{
    int depth = 0;
    const struct resource_handle *handles = tensor->data;
    for (int64_t i = 0; tensor->dtype == VARIANT && i < tensor->count; i++) {
        const struct resource *resource = handles[i].resource;
        if (!resource || strcmp(resource->kind, DATASET_KIND) != 0)
            continue;
        int below = ((const struct dataset *)resource)->depth;
        depth = below > depth ? below : depth;
    }
    return depth;
}

bool kernel_dataset_deepen(struct dataset *dataset, const struct tensor *tensors, int count,
                           struct error *err)
{
    for (int i = 0; i < count; i++)
        if (!set_depth(dataset, kernel_dataset_depth(&tensors[i]), err))
            return false;
    return true;
}

int64_t kernel_dataset_cardinality(const struct dataset *dataset)
{
    return dataset->type->cardinality ? dataset->type->cardinality(dataset)
                                      : CARDINALITY_UNKNOWN;
}

bool kernel_dataset_suits(const struct dataset *dataset, const struct signature *signature,
                          struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (signature->width != dataset->width)
        return fail(err, INVALID,
                    "Number of components does not match: expected %d types but got %d.",
                    signature->width, dataset->width);
    for (int i = 0; i < dataset->width; i++) {
        if ((int)dataset->types[i] != signature->types[i])
            return fail(
                err, INVALID, "Data type mismatch at component %d: expected %s but got %s.", i,
                dtype_name((enum dtype)signature->types[i]), dtype_name(dataset->types[i]));
        if (signature->shapes && !shape_compatible(&signature->shapes[i], &dataset->shapes[i]))
            return fail(err, INVALID,
                        "Incompatible shapes at component %d: expected %s but got %s.", i,
                        shape_text(&signature->shapes[i], a, sizeof(a)),
                        shape_text(&dataset->shapes[i], b, sizeof(b)));
    }
    return true;
}
