/*
 * optimizer.c - optimizers: one step of a variable and its slots.
 *
 * The same function of one element (optimizer_steps.c) serves the dense and the sparse forms,
 * by reference and by resource.  Everything is checked before anything is changed, so that a
 * step that fails leaves variable and slots as they were (but for bad indices, where TensorFlow
 * meets some late); all of them are locked meanwhile.
 */

#include "kernels/ref/optimizer.h"

#include "base/alloc.h"
#include "runtime/resource.h"

/* What a node needs, worked out once. */
struct prepared {
    const struct optimizer *optimizer;
    int scalars[OPTIMIZER_SCALARS_MAX]; /* inputs */
    int grad, indices;                  /* inputs; indices -1: dense */
    struct optimizer_flags flags;
};

static int input_named(const struct node *node, const char *name)
{
    const struct op_signature *signature = op_signature(node->op);
    for (int i = 0; i < signature->inputs_count; i++)
        if (strcmp(signature->inputs[i].name, name) == 0)
            return i;
    return -1;
}

static int scalars_count(const struct optimizer *optimizer)
{
    int count = 0;
    while (count < OPTIMIZER_SCALARS_MAX && optimizer->scalars[count])
        count++;
    return count;
}

static bool optimizer_prepare(const struct node *node, void **state, struct error *err)
{
    (void)err;
    struct prepared *prepared = alloc_bytes(sizeof(*prepared));
    prepared->optimizer = kernel_optimizer(node->op->name);
    for (int i = 0; i < scalars_count(prepared->optimizer); i++) {
        prepared->scalars[i] = input_named(node, prepared->optimizer->scalars[i]);
        assert(prepared->scalars[i] >= 0);
    }
    prepared->indices = input_named(node, "indices");
    prepared->grad = input_named(node, "grad");
    if (prepared->grad < 0)
        prepared->grad = input_named(node, "delta");
    prepared->flags = (struct optimizer_flags){
        .nesterov = node_attr_bool(node, "use_nesterov", false),
        .update_slots = node_attr_bool(node, "update_slots", true),
        .linear_by_lr = node_attr_bool(node, "multiply_linear_by_lr", false),
    };
    *state = prepared;
    return true;
}

/* --- checks --- */

static bool check_variables_locked(const struct kernel_call *call,
                                   struct variable *const *variables, int count,
                                   enum dtype dtype, struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    bool by_ref = dtype_is_ref(call->node->input_types[0]);
    const struct shape *shape = &variables[0]->value.shape;
    for (int i = 0; i < count; i++) {
        const struct tensor *value = &variables[i]->value;
        if (value->dtype == DTYPE_NONE)
            return by_ref ? fail(err, PRECONDITION, "Attempting to use uninitialized value %s",
                                 variables[i]->name)
                          : fail(err, INTERNAL, "Invalid variable reference.");
        if (value->dtype != dtype)
            return fail(err, INVALID, "variable '%s' holds %s, its gradient is %s",
                        variables[i]->name, dtype_name(value->dtype), dtype_name(dtype));
        if (!shape_equal(&value->shape, shape))
            return fail(err, INVALID, "variable '%s' has shape %s, its slot '%s' %s",
                        variables[0]->name, shape_text(shape, a, sizeof(a)), variables[i]->name,
                        shape_text(&value->shape, b, sizeof(b)));
    }
    return true;
}

/* Of these optimizers TensorFlow checks the numbers too. */
static bool check_scalar(const struct kernel_call *call, const char *name, double value,
                         struct error *err)
{
    const char *op = call->node->op->name;
    bool ftrl = strstr(op, "Ftrl");
    if (!ftrl && !strstr(op, "ProximalAdagrad"))
        return true;
    if (strcmp(name, "lr") == 0) {
        bool zero = ftrl && node_attr_bool(call->node, "multiply_linear_by_lr", false);
        return value > 0 || (zero && value == 0) ||
               fail(err, INVALID, "lr is not a positive scalar: %g", value);
    }
    if (strcmp(name, "lr_power") == 0)
        return value <= 0 ||
               fail(err, INVALID, "lr_power is not a non-positive scalar: %g", value);
    return value >= 0 || (name[0] != 'l') ||
           fail(err, INVALID, "%s is not a non-negative scalar: %g", name, value);
}

static bool read_scalars(const struct kernel_call *call, const struct prepared *prepared,
                         double complex *scalars, struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    for (int i = 0; i < scalars_count(prepared->optimizer); i++) {
        const struct tensor *scalar = kernel_in(call, prepared->scalars[i]);
        /* TensorFlow looks at that of another scalar twice in the place of this one. */
        const char *name = prepared->optimizer->name;
        bool unseen = (!strcmp(name, "AddSign") || !strcmp(name, "PowerSign")) && i == 2;
        if (scalar->shape.rank != 0 && !(unseen && scalar->count == 1))
            return fail(err, INVALID, "%s is not a scalar : %s",
                        prepared->optimizer->scalars[i],
                        shape_text(&scalar->shape, text, sizeof(text)));
        scalars[i] = kernel_complex_at(scalar, 0);
        if (!check_scalar(call, prepared->optimizer->scalars[i], creal(scalars[i]), err))
            return false;
    }
    return true;
}

/* Whether row `i` of the gradient has a row of the variable to go to. */
static bool check_index(const struct tensor *indices, int64_t i, int64_t rows,
                        struct error *err)
{
    int64_t index = tensor_integer(indices, i);
    return (index >= 0 && index < rows) ||
           fail(err, INVALID, "Index %lld at offset %lld in indices is out of range",
                (long long)index, (long long)i);
}

/* Those that refuse rows of no elements. */
static bool wants_elements(const char *name)
{
    static const char *const families[] = {"Ftrl", "Adagrad", "Proximal"};
    for (int i = 0; i < ARRAY_LEN(families); i++)
        if (strncmp(name, families[i], strlen(families[i])) == 0)
            return true;
    return false;
}

/* The gradient has the variable's shape, or one row of it for each index. */
static bool check_grad(const struct kernel_call *call, const struct prepared *prepared,
                       const struct tensor *value, struct error *err)
{
    const struct tensor *grad = kernel_in(call, prepared->grad);
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    struct shape expected = value->shape;
    if (prepared->indices >= 0) {
        const struct tensor *indices = kernel_in(call, prepared->indices);
        if (expected.rank < 1)
            return fail(err, INVALID, "var must be at least 1 dimensional");
        if (indices->shape.rank != 1)
            return fail(err, INVALID, "indices must be one-dimensional");
        for (int64_t i = 0; !prepared->optimizer->checks_late && i < indices->count; i++)
            if (!check_index(indices, i, expected.dims[0], err))
                return false;
        expected.dims[0] = indices->count;
    }
    if (!shape_equal(&expected, &grad->shape))
        return fail(err, INVALID, "var and grad do not have the same shape %s %s",
                    shape_text(&value->shape, a, sizeof(a)),
                    shape_text(&grad->shape, b, sizeof(b)));
    return prepared->indices < 0 || !wants_elements(prepared->optimizer->name) ||
           kernel_span(&expected, 1, expected.rank) > 0 ||
           fail(err, INVALID, "Inner dimension should be greater than zero.");
}

/* --- the step --- */

/* One row of elements: of the variables from `start`, of the gradient from `grad_start`. */
struct row {
    int64_t start;
    int64_t grad_start;
    int64_t count;
};

static void step_real(const struct prepared *prepared, struct variable *const *variables,
                      const struct tensor *grad, const struct row *row,
                      const double complex *scalars)
{
    double values[OPTIMIZER_VARIABLES_MAX], s[OPTIMIZER_SCALARS_MAX] = {0};
    kernel_load *load = kernel_load_for(grad->dtype);
    kernel_store *store = kernel_store_for(grad->dtype);
    for (int i = 0; i < scalars_count(prepared->optimizer); i++)
        s[i] = creal(scalars[i]);
    struct optimizer_input in = {.v = values, .s = s, .flags = prepared->flags};
    for (int64_t k = 0; k < row->count; k++) {
        for (int i = 0; i < prepared->optimizer->variables; i++)
            values[i] = load(variables[i]->value.data, row->start + k);
        in.g = load(grad->data, row->grad_start + k);
        prepared->optimizer->step(&in);
        for (int i = 0; i < prepared->optimizer->variables; i++)
            store(variables[i]->value.data, row->start + k, values[i]);
    }
}

static void step_complex(const struct prepared *prepared, struct variable *const *variables,
                         const struct tensor *grad, const struct row *row,
                         const double complex *scalars)
{
    double complex values[OPTIMIZER_VARIABLES_MAX];
    struct optimizer_complex_input in = {.v = values, .s = scalars, .flags = prepared->flags};
    for (int64_t k = 0; k < row->count; k++) {
        for (int i = 0; i < prepared->optimizer->variables; i++)
            values[i] = kernel_complex_at(&variables[i]->value, row->start + k);
        in.g = kernel_complex_at(grad, row->grad_start + k);
        prepared->optimizer->complex_step(&in);
        for (int i = 0; i < prepared->optimizer->variables; i++)
            kernel_set_complex(&variables[i]->value, row->start + k, values[i]);
    }
}

static bool step_locked(struct kernel_call *call, struct variable *const *variables,
                        struct error *err)
{
    const struct prepared *prepared = call->state;
    const struct tensor *grad = kernel_in(call, prepared->grad);
    int count = prepared->optimizer->variables;
    double complex scalars[OPTIMIZER_SCALARS_MAX];
    const struct tensor *value = &variables[0]->value;
    if (!check_variables_locked(call, variables, count, grad->dtype, err) ||
        !read_scalars(call, prepared, scalars, err) || !check_grad(call, prepared, value, err))
        return false;
    for (int i = 0; i < count; i++)
        if (!variable_make_exclusive_locked(variables[i], err))
            return false;
    bool is_complex = (BIT(grad->dtype) & DTYPES_COMPLEX) != 0;
    int64_t rows = 1, length = value->count;
    const struct tensor *indices = NULL;
    if (prepared->indices >= 0) {
        indices = kernel_in(call, prepared->indices);
        rows = indices->count;
        length = kernel_span(&value->shape, 1, value->shape.rank);
    }
    for (int64_t i = 0; i < rows; i++) {
        if (indices && !check_index(indices, i, value->shape.dims[0], err))
            return false;
        const struct row row = {.start = indices ? tensor_integer(indices, i) * length : 0,
                                .grad_start = i * length,
                                .count = length};
        (is_complex ? step_complex : step_real)(prepared, variables, grad, &row, scalars);
    }
    return true;
}

static bool optimizer_run(struct kernel_call *call, struct error *err)
{
    const struct prepared *prepared = call->state;
    int count = prepared->optimizer->variables;
    struct variable *variables[OPTIMIZER_VARIABLES_MAX];
    for (int i = 0; i < count; i++) {
        variables[i] = kernel_variable(call, i, err);
        if (!variables[i])
            return false;
    }
    variable_lock_all(variables, count);
    bool ok = step_locked(call, variables, err);
    variable_unlock_all(variables, count);
    if (ok && dtype_is_ref(call->node->input_types[0]))
        kernel_output_ref(call, 0, variables[0]);
    return ok;
}

#define KERNEL(name_, dtypes_)                                                                 \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .prepare = optimizer_prepare,           \
        .release = free, .run = optimizer_run,                                                 \
    }
#define REAL(name_) KERNEL(name_, DTYPES_FLOAT)
#define OPTIMIZER(name_) KERNEL(name_, DTYPES_FLOAT | DTYPES_COMPLEX)

const struct kernel kernel_apply_ada_max_ref = REAL("ApplyAdaMax");
const struct kernel kernel_resource_apply_ada_max_ref = REAL("ResourceApplyAdaMax");
const struct kernel kernel_apply_adadelta_ref = OPTIMIZER("ApplyAdadelta");
const struct kernel kernel_resource_apply_adadelta_ref = OPTIMIZER("ResourceApplyAdadelta");
const struct kernel kernel_apply_adagrad_ref = OPTIMIZER("ApplyAdagrad");
const struct kernel kernel_resource_apply_adagrad_ref = OPTIMIZER("ResourceApplyAdagrad");
const struct kernel kernel_apply_adagrad_da_ref = REAL("ApplyAdagradDA");
const struct kernel kernel_resource_apply_adagrad_da_ref = REAL("ResourceApplyAdagradDA");
const struct kernel kernel_apply_adagrad_v2_ref = OPTIMIZER("ApplyAdagradV2");
const struct kernel kernel_resource_apply_adagrad_v2_ref = OPTIMIZER("ResourceApplyAdagradV2");
const struct kernel kernel_apply_adam_ref = OPTIMIZER("ApplyAdam");
const struct kernel kernel_resource_apply_adam_ref = OPTIMIZER("ResourceApplyAdam");
const struct kernel kernel_resource_apply_adam_with_amsgrad_ref =
    REAL("ResourceApplyAdamWithAmsgrad");
const struct kernel kernel_apply_add_sign_ref = REAL("ApplyAddSign");
const struct kernel kernel_resource_apply_add_sign_ref = REAL("ResourceApplyAddSign");
const struct kernel kernel_apply_centered_rms_prop_ref = OPTIMIZER("ApplyCenteredRMSProp");
const struct kernel kernel_resource_apply_centered_rms_prop_ref =
    OPTIMIZER("ResourceApplyCenteredRMSProp");
const struct kernel kernel_apply_ftrl_ref = REAL("ApplyFtrl");
const struct kernel kernel_resource_apply_ftrl_ref = REAL("ResourceApplyFtrl");
const struct kernel kernel_apply_ftrl_v2_ref = REAL("ApplyFtrlV2");
const struct kernel kernel_resource_apply_ftrl_v2_ref = REAL("ResourceApplyFtrlV2");
const struct kernel kernel_apply_gradient_descent_ref = OPTIMIZER("ApplyGradientDescent");
const struct kernel kernel_resource_apply_gradient_descent_ref =
    OPTIMIZER("ResourceApplyGradientDescent");
const struct kernel kernel_resource_apply_keras_momentum_ref =
    OPTIMIZER("ResourceApplyKerasMomentum");
const struct kernel kernel_apply_momentum_ref = OPTIMIZER("ApplyMomentum");
const struct kernel kernel_resource_apply_momentum_ref = OPTIMIZER("ResourceApplyMomentum");
const struct kernel kernel_apply_power_sign_ref = REAL("ApplyPowerSign");
const struct kernel kernel_resource_apply_power_sign_ref = REAL("ResourceApplyPowerSign");
const struct kernel kernel_apply_proximal_adagrad_ref = REAL("ApplyProximalAdagrad");
const struct kernel kernel_apply_proximal_gradient_descent_ref =
    REAL("ApplyProximalGradientDescent");
const struct kernel kernel_apply_rms_prop_ref = OPTIMIZER("ApplyRMSProp");
const struct kernel kernel_resource_apply_rms_prop_ref = OPTIMIZER("ResourceApplyRMSProp");
const struct kernel kernel_resource_sparse_apply_adadelta_ref =
    OPTIMIZER("ResourceSparseApplyAdadelta");
const struct kernel kernel_sparse_apply_adadelta_ref = OPTIMIZER("SparseApplyAdadelta");
const struct kernel kernel_sparse_apply_adagrad_ref = OPTIMIZER("SparseApplyAdagrad");
const struct kernel kernel_resource_sparse_apply_adagrad_da_ref =
    REAL("ResourceSparseApplyAdagradDA");
const struct kernel kernel_sparse_apply_adagrad_da_ref = REAL("SparseApplyAdagradDA");
const struct kernel kernel_resource_sparse_apply_adagrad_v2_ref =
    OPTIMIZER("ResourceSparseApplyAdagradV2");
const struct kernel kernel_resource_sparse_apply_centered_rms_prop_ref =
    OPTIMIZER("ResourceSparseApplyCenteredRMSProp");
const struct kernel kernel_sparse_apply_centered_rms_prop_ref =
    OPTIMIZER("SparseApplyCenteredRMSProp");
const struct kernel kernel_resource_sparse_apply_ftrl_ref = REAL("ResourceSparseApplyFtrl");
const struct kernel kernel_sparse_apply_ftrl_ref = REAL("SparseApplyFtrl");
const struct kernel kernel_resource_sparse_apply_ftrl_v2_ref =
    REAL("ResourceSparseApplyFtrlV2");
const struct kernel kernel_sparse_apply_ftrl_v2_ref = REAL("SparseApplyFtrlV2");
const struct kernel kernel_resource_sparse_apply_keras_momentum_ref =
    OPTIMIZER("ResourceSparseApplyKerasMomentum");
const struct kernel kernel_resource_sparse_apply_momentum_ref =
    OPTIMIZER("ResourceSparseApplyMomentum");
const struct kernel kernel_resource_sparse_apply_proximal_adagrad_ref =
    REAL("ResourceSparseApplyProximalAdagrad");
const struct kernel kernel_resource_sparse_apply_proximal_gradient_descent_ref =
    REAL("ResourceSparseApplyProximalGradientDescent");
const struct kernel kernel_sparse_apply_proximal_gradient_descent_ref =
    REAL("SparseApplyProximalGradientDescent");
const struct kernel kernel_resource_sparse_apply_rms_prop_ref =
    OPTIMIZER("ResourceSparseApplyRMSProp");
const struct kernel kernel_sparse_apply_rms_prop_ref = OPTIMIZER("SparseApplyRMSProp");
const struct kernel kernel_resource_apply_proximal_adagrad_ref =
    REAL("ResourceApplyProximalAdagrad");
const struct kernel kernel_resource_apply_proximal_gradient_descent_ref =
    REAL("ResourceApplyProximalGradientDescent");
const struct kernel kernel_resource_sparse_apply_adagrad_ref =
    OPTIMIZER("ResourceSparseApplyAdagrad");
const struct kernel kernel_sparse_apply_adagrad_v2_ref = OPTIMIZER("SparseApplyAdagradV2");
const struct kernel kernel_sparse_apply_momentum_ref = OPTIMIZER("SparseApplyMomentum");
const struct kernel kernel_sparse_apply_proximal_adagrad_ref =
    REAL("SparseApplyProximalAdagrad");
