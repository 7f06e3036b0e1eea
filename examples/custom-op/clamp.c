/*
 * clamp.c - a library with an op of its own: SoftClamp(x), which is bound * tanh(x / bound).
 *
 *   cc -shared -fPIC clamp.c $(pkg-config --cflags trainyard) -lm -o libclamp.so
 *
 * Whoever calls ty_load_library("libclamp.so") has the op; `trainyard train` and `trainyard
 * graph show` take --load-library.
 */
#include <math.h>
#include <stdlib.h>

#include "runtime/trainyard.h"

struct clamp {
    float bound;
};

static void *clamp_create(struct ty_kernel_construction *construction)
{
    struct ty_status *status = ty_status_new();
    struct clamp *clamp = malloc(sizeof(*clamp));
    clamp->bound = ty_operation_attr_float(ty_kernel_construction_operation(construction),
                                           "bound", status);
    if (ty_status_code(status) != TY_OK)
        ty_kernel_construction_fail(construction, ty_status_code(status),
                                    ty_status_message(status));
    else if (!(clamp->bound > 0))
        ty_kernel_construction_fail(construction, TY_INVALID_ARGUMENT,
                                    "bound must be more than 0");
    ty_status_free(status);
    return clamp;
}

/* The same for float and double. */
#define COMPUTE(name, type, function)                                                          \
    static void name(void *state, struct ty_kernel_context *context)                           \
    {                                                                                          \
        const struct clamp *clamp = state;                                                     \
        const struct ty_tensor *x = ty_kernel_input(context, 0);                               \
        int64_t dims[32];                                                                      \
        int rank = ty_tensor_rank(x);                                                          \
        for (int i = 0; i < rank; i++)                                                         \
            dims[i] = ty_tensor_dim(x, i);                                                     \
        struct ty_tensor *y = ty_kernel_output(context, 0, dims, rank);                        \
        if (!y)                                                                                \
            return;                                                                            \
        const type *from = ty_tensor_data(x);                                                  \
        type *to = ty_tensor_data(y), bound = (type)clamp->bound;                              \
        for (int64_t i = 0; i < ty_tensor_count(x); i++)                                       \
            to[i] = bound * function(from[i] / bound);                                         \
    }

COMPUTE(compute_float, float, tanhf)
COMPUTE(compute_double, double, tanh)

static void clamp_shape(struct ty_shape_context *context, struct ty_status *status)
{
    (void)status;
    ty_shape_set_same(context, 0, 0);
}

void ty_library_init(struct ty_status *status);

void ty_library_init(struct ty_status *status)
{
    struct ty_op *op = ty_op_new("SoftClamp");
    ty_op_add_input(op, "x: T");
    ty_op_add_output(op, "y: T");
    ty_op_add_attr(op, "T: {float, double}");
    ty_op_add_attr(op, "bound: float = 1");
    ty_op_set_shape(op, clamp_shape);
    ty_op_register(op, status);
    if (ty_status_code(status) != TY_OK)
        return;

    static const struct {
        enum ty_dtype type;
        void (*compute)(void *state, struct ty_kernel_context *context);
    } kernels[] = {{TY_FLOAT, compute_float}, {TY_DOUBLE, compute_double}};
    for (int i = 0; i < 2 && ty_status_code(status) == TY_OK; i++) {
        struct ty_kernel *kernel =
            ty_kernel_new("SoftClamp", "CPU", clamp_create, kernels[i].compute, free);
        ty_kernel_set_types(kernel, "T", &kernels[i].type, 1);
        ty_kernel_register(kernel, status);
    }
}
