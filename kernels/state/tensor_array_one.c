/* tensor_array_one.c - tensor arrays: made, one element written or read, closed. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "kernels/ref/numbers.h"
#include "kernels/state/tensor_array.h"

/* A flow carries no value; it tells what comes after what. */
static bool new_flow(struct kernel_call *call, int output, struct error *err)
{
    struct tensor *flow = kernel_output(call, output, &SHAPE_SCALAR, err);
    if (!flow)
        return false;
    *tensor_f32_mut(flow) = 0;
    return true;
}

static void pass_flow(struct kernel_call *call, int input)
{
    const struct tensor *flow = kernel_in(call, input);
    kernel_output_share(call, 0, flow, &flow->shape);
}

static bool array_run(struct kernel_call *call, struct error *err)
{
    static int made; /* __atomic; tells arrays of one node apart in messages */
    const struct node *node = call->node;
    const struct shape *shape = node_attr_shape(node, "element_shape");
    const char *given = node_attr_string(node, "tensor_array_name", "");
    const struct tensor *size = kernel_in(call, 0);
    char text[SHAPE_TEXT_BYTES];
    if (size->shape.rank != 0)
        return fail(err, INVALID, "TensorArray size must be scalar, but had shape: %s",
                    shape_text(&size->shape, text, sizeof(text)));
    char *name = alloc_printf("%s_%d", *given ? given : node->name,
                              __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED));
    const struct tensor_array_options options = {
        .name = name,
        .dtype = (enum dtype)node_attr_type(node, "dtype"),
        .element_shape = shape ? *shape : SHAPE_UNKNOWN,
        .dynamic_size = node_attr_bool(node, "dynamic_size", false),
        .clear_after_read = node_attr_bool(node, "clear_after_read", true),
        .identical_element_shapes = node_attr_bool(node, "identical_element_shapes", false),
    };
    struct tensor_array *array = kernel_tensor_array_new(&options, *tensor_i32(size), err);
    free(name);
    if (!array)
        return false;
    bool ok = kernel_tensor_array_output(call, array, err) && new_flow(call, 1, err);
    kernel_tensor_array_unref(array);
    return ok;
}

static bool read_index(const struct kernel_call *call, int64_t *index, struct error *err)
{
    const struct tensor *tensor = kernel_in(call, 1);
    char text[SHAPE_TEXT_BYTES];
    if (tensor->shape.rank != 0)
        return fail(err, INVALID, "TensorArray index must be scalar, but had shape: %s",
                    shape_text(&tensor->shape, text, sizeof(text)));
    *index = *tensor_i32(tensor);
    return true;
}

static bool write_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *value = kernel_in(call, 2);
    int64_t index = 0;
    struct tensor_array *array =
        read_index(call, &index, err) ? kernel_tensor_array_of(call, value->dtype, err) : NULL;
    if (!array)
        return false;
    struct tensor item = {0};
    tensor_share(&item, value);
    bool ok = kernel_tensor_array_write(array, index, &item, err);
    if (ok)
        pass_flow(call, 3);
    kernel_tensor_array_unref(array);
    return ok;
}

static bool read_run(struct kernel_call *call, struct error *err)
{
    int64_t index = 0;
    struct tensor_array *array =
        read_index(call, &index, err)
            ? kernel_tensor_array_of(call, dtype_base(call->node->output_types[0]), err)
            : NULL;
    if (!array)
        return false;
    struct tensor value = {0};
    bool ok = kernel_tensor_array_read(array, index, &value, err);
    if (ok)
        kernel_output_take(call, 0, &value);
    kernel_tensor_array_unref(array);
    return ok;
}

static bool size_run(struct kernel_call *call, struct error *err)
{
    struct tensor_array *array = kernel_tensor_array(call, err);
    struct tensor_array_state state;
    if (!array)
        return false;
    bool ok = kernel_tensor_array_look(array, &state, err);
    struct tensor *out = ok ? kernel_output(call, 0, &SHAPE_SCALAR, err) : NULL;
    if (out)
        *(int32_t *)out->data = (int32_t)state.size;
    kernel_tensor_array_unref(array);
    return out != NULL;
}

/* With a third input, the shape that stands before that of the elements. */
static bool grad_run(struct kernel_call *call, struct error *err)
{
    struct shape prefix;
    bool with_prefix = call->in_count > 2;
    if (with_prefix && !kernel_shape_in(call, 2, &prefix, err))
        return false;
    struct tensor_array *array = kernel_tensor_array(call, err);
    if (!array)
        return false;
    struct tensor_array *grad = kernel_tensor_array_grad(
        array, node_attr_string(call->node, "source", ""), with_prefix ? &prefix : NULL, err);
    bool ok = grad && kernel_tensor_array_output(call, grad, err) && new_flow(call, 1, err);
    if (grad)
        kernel_tensor_array_unref(grad);
    kernel_tensor_array_unref(array);
    return ok;
}

static bool close_run(struct kernel_call *call, struct error *err)
{
    struct tensor_array *array = kernel_tensor_array(call, err);
    if (!array)
        return false;
    kernel_tensor_array_close(array);
    kernel_tensor_array_unref(array);
    return true;
}

#define KERNEL(name_, run_)                                                                    \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_tensor_array_v3 = KERNEL("TensorArrayV3", array_run);
const struct kernel kernel_tensor_array_write_v3 = KERNEL("TensorArrayWriteV3", write_run);
const struct kernel kernel_tensor_array_read_v3 = KERNEL("TensorArrayReadV3", read_run);
const struct kernel kernel_tensor_array_size_v3 = KERNEL("TensorArraySizeV3", size_run);
const struct kernel kernel_tensor_array_grad_v3 = KERNEL("TensorArrayGradV3", grad_run);
const struct kernel kernel_tensor_array_grad_with_shape =
    KERNEL("TensorArrayGradWithShape", grad_run);
const struct kernel kernel_tensor_array_close_v3 = KERNEL("TensorArrayCloseV3", close_run);
