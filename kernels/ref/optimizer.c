/*
 * optimizer.c - one step of an optimizer on a variable and its slots.
 *
 * Every optimizer is a function of one element: its variables (the weight first, then the
 * slots), its gradient and the scalars.  The same function serves the dense and the sparse
 * forms, by reference and by resource.  Everything is checked before anything is changed, so
 * that a step that fails leaves variable and slots as they were.
 */

#include "kernels/ref/numbers.h"

#include <math.h>

#include "base/alloc.h"
#include "runtime/resource.h"

#define VARIABLES_MAX 4
#define SCALARS_MAX 8

struct step_input {
    double *v;       /* values of the variables, to be changed */
    double g;        /* gradient */
    const double *s; /* scalars, in the order of the row */
    bool nesterov, update_slots, linear_by_lr;
};

static double sign(double x)
{
    return (x > 0) - (x < 0);
}

/* Moves towards zero by `by`, not past it. */
static double shrink(double x, double by)
{
    return sign(x) * fmax(fabs(x) - by, 0);
}

static void gradient_descent(const struct step_input *in)
{
    in->v[0] -= in->s[0] * in->g;
}

static void momentum(const struct step_input *in)
{
    double lr = in->s[0], mu = in->s[1];
    in->v[1] = in->v[1] * mu + in->g;
    in->v[0] -= in->nesterov ? lr * in->g + lr * mu * in->v[1] : lr * in->v[1];
}

static void keras_momentum(const struct step_input *in)
{
    double lr = in->s[0], mu = in->s[1];
    in->v[1] = in->v[1] * mu - lr * in->g;
    in->v[0] += in->nesterov ? in->v[1] * mu - lr * in->g : in->v[1];
}

/* s: beta1_power beta2_power lr beta1 beta2 epsilon */
static void adam(const struct step_input *in)
{
    double rate = in->s[2] * sqrt(1 - in->s[1]) / (1 - in->s[0]), b1 = in->s[3];
    in->v[1] += (in->g - in->v[1]) * (1 - b1);
    in->v[2] += (in->g * in->g - in->v[2]) * (1 - in->s[4]);
    double numerator = in->nesterov ? in->g * (1 - b1) + b1 * in->v[1] : in->v[1];
    in->v[0] -= rate * numerator / (sqrt(in->v[2]) + in->s[5]);
}

static void amsgrad(const struct step_input *in)
{
    double rate = in->s[2] * sqrt(1 - in->s[1]) / (1 - in->s[0]);
    in->v[1] += (in->g - in->v[1]) * (1 - in->s[3]);
    in->v[2] += (in->g * in->g - in->v[2]) * (1 - in->s[4]);
    in->v[3] = fmax(in->v[3], in->v[2]);
    in->v[0] -= rate * in->v[1] / (sqrt(in->v[3]) + in->s[5]);
}

/* s: beta1_power lr beta1 beta2 epsilon */
static void ada_max(const struct step_input *in)
{
    in->v[1] += (in->g - in->v[1]) * (1 - in->s[2]);
    in->v[2] = fmax(in->s[3] * in->v[2], fabs(in->g));
    in->v[0] -= in->s[1] / (1 - in->s[0]) * in->v[1] / (in->v[2] + in->s[4]);
}

static void adagrad(const struct step_input *in)
{
    if (in->update_slots)
        in->v[1] += in->g * in->g;
    in->v[0] -= in->s[0] * in->g / sqrt(in->v[1]);
}

static void adagrad_v2(const struct step_input *in)
{
    if (in->update_slots)
        in->v[1] += in->g * in->g;
    in->v[0] -= in->s[0] * in->g / (sqrt(in->v[1]) + in->s[1]);
}

/* s: lr l1 l2 global_step */
static void adagrad_da(const struct step_input *in)
{
    double lr = in->s[0], l1 = in->s[1], l2 = in->s[2], t = in->s[3];
    in->v[1] += in->g;
    in->v[2] += in->g * in->g;
    double gradients = l1 > 0 ? shrink(in->v[1], l1 * t) : in->v[1];
    in->v[0] = -lr * gradients / (l2 * t * lr + sqrt(in->v[2]));
}

/* s: lr rho epsilon */
static void adadelta(const struct step_input *in)
{
    double lr = in->s[0], rho = in->s[1], epsilon = in->s[2];
    in->v[1] = rho * in->v[1] + (1 - rho) * in->g * in->g;
    double update = sqrt(in->v[2] + epsilon) / sqrt(in->v[1] + epsilon) * in->g;
    in->v[0] -= lr * update;
    in->v[2] = rho * in->v[2] + (1 - rho) * update * update;
}

/* s: lr rho momentum epsilon; v: var ms mom */
static void rms_prop(const struct step_input *in)
{
    in->v[1] += (in->g * in->g - in->v[1]) * (1 - in->s[1]);
    in->v[2] = in->v[2] * in->s[2] + in->s[0] * in->g / sqrt(in->v[1] + in->s[3]);
    in->v[0] -= in->v[2];
}

/* v: var mg ms mom */
static void centered_rms_prop(const struct step_input *in)
{
    double decay = 1 - in->s[1];
    in->v[2] += (in->g * in->g - in->v[2]) * decay;
    in->v[1] += (in->g - in->v[1]) * decay;
    double spread = in->v[2] - in->v[1] * in->v[1] + in->s[3];
    in->v[3] = in->v[3] * in->s[2] + in->s[0] * in->g / sqrt(spread);
    in->v[0] -= in->v[3];
}

/* v: var accum linear */
static void ftrl_step(const struct step_input *in, double g, double lr, double l1, double l2,
                      double lr_power)
{
    double before = pow(in->v[1], -lr_power), squares = in->v[1] + in->g * in->g;
    double after = pow(squares, -lr_power);
    double threshold, denominator;
    if (in->linear_by_lr) {
        in->v[2] += lr * g - (after - before) * in->v[0];
        threshold = l1 * lr;
        denominator = after + 2 * l2 * lr;
    } else {
        in->v[2] += g - (after - before) / lr * in->v[0];
        threshold = l1;
        denominator = after / lr + 2 * l2;
    }
    double linear = in->v[2];
    in->v[0] = fabs(linear) > threshold ? (threshold * sign(linear) - linear) / denominator : 0;
    in->v[1] = squares;
}

/* s: lr l1 l2 lr_power */
static void ftrl(const struct step_input *in)
{
    ftrl_step(in, in->g, in->s[0], in->s[1], in->s[2], in->s[3]);
}

/* s: lr l1 l2 l2_shrinkage lr_power */
static void ftrl_v2(const struct step_input *in)
{
    double g = in->g + 2 * in->s[3] * in->v[0];
    ftrl_step(in, g, in->s[0], in->s[1], in->s[2], in->s[4]);
}

/* s: alpha l1 l2 */
static void proximal_gradient_descent(const struct step_input *in)
{
    double alpha = in->s[0], moved = in->v[0] - alpha * in->g;
    in->v[0] = shrink(moved, alpha * in->s[1]) / (1 + alpha * in->s[2]);
}

static void proximal_adagrad(const struct step_input *in)
{
    in->v[1] += in->g * in->g;
    double alpha = in->s[0] / sqrt(in->v[1]), moved = in->v[0] - alpha * in->g;
    in->v[0] = shrink(moved, alpha * in->s[1]) / (1 + alpha * in->s[2]);
}

/* s: lr logbase sign_decay beta */
static void power_sign(const struct step_input *in)
{
    in->v[1] = in->s[3] * in->v[1] + (1 - in->s[3]) * in->g;
    double agreement = sign(in->g) * sign(in->v[1]);
    in->v[0] -= in->s[0] * exp(in->s[1] * in->s[2] * agreement) * in->g;
}

/* s: lr alpha sign_decay beta */
static void add_sign(const struct step_input *in)
{
    in->v[1] = in->s[3] * in->v[1] + (1 - in->s[3]) * in->g;
    double agreement = sign(in->g) * sign(in->v[1]);
    in->v[0] -= in->s[0] * (in->s[1] + in->s[2] * agreement) * in->g;
}

struct optimizer {
    const char *name; /* of the op behind Resource, Sparse and Apply */
    int variables;    /* the weight and the slots: the first inputs */
    const char *scalars[SCALARS_MAX];
    void (*step)(const struct step_input *in);
};

static const struct optimizer optimizers[] = {
    {"GradientDescent", 1, {"alpha"}, gradient_descent},
    {"Momentum", 2, {"lr", "momentum"}, momentum},
    {"KerasMomentum", 2, {"lr", "momentum"}, keras_momentum},
    {"Adam", 3, {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"}, adam},
    {"AdamWithAmsgrad",
     4,
     {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"},
     amsgrad},
    {"AdaMax", 3, {"beta1_power", "lr", "beta1", "beta2", "epsilon"}, ada_max},
    {"Adagrad", 2, {"lr"}, adagrad},
    {"AdagradV2", 2, {"lr", "epsilon"}, adagrad_v2},
    {"AdagradDA", 3, {"lr", "l1", "l2", "global_step"}, adagrad_da},
    {"Adadelta", 3, {"lr", "rho", "epsilon"}, adadelta},
    {"RMSProp", 3, {"lr", "rho", "momentum", "epsilon"}, rms_prop},
    {"CenteredRMSProp", 4, {"lr", "rho", "momentum", "epsilon"}, centered_rms_prop},
    {"Ftrl", 3, {"lr", "l1", "l2", "lr_power"}, ftrl},
    {"FtrlV2", 3, {"lr", "l1", "l2", "l2_shrinkage", "lr_power"}, ftrl_v2},
    {"ProximalGradientDescent", 1, {"alpha", "l1", "l2"}, proximal_gradient_descent},
    {"ProximalAdagrad", 2, {"lr", "l1", "l2"}, proximal_adagrad},
    {"PowerSign", 2, {"lr", "logbase", "sign_decay", "beta"}, power_sign},
    {"AddSign", 2, {"lr", "alpha", "sign_decay", "beta"}, add_sign},
};

/* What a node needs, worked out once. */
struct prepared {
    const struct optimizer *optimizer;
    int scalars[SCALARS_MAX]; /* inputs */
    int grad, indices;        /* inputs; indices -1: dense */
    bool nesterov, update_slots, linear_by_lr;
};

static int input_named(const struct node *node, const char *name)
{
    const struct op_signature *signature = op_signature(node->op);
    for (int i = 0; i < signature->inputs_count; i++)
        if (strcmp(signature->inputs[i].name, name) == 0)
            return i;
    return -1;
}

static bool optimizer_prepare(const struct node *node, void **state, struct error *err)
{
    (void)err;
    const char *name = strstr(node->op->name, "Apply") + strlen("Apply");
    struct prepared *prepared = alloc_bytes(sizeof(*prepared));
    for (int i = 0; i < ARRAY_LEN(optimizers); i++)
        if (strcmp(optimizers[i].name, name) == 0)
            prepared->optimizer = &optimizers[i];
    assert(prepared->optimizer);
    for (int i = 0; i < SCALARS_MAX && prepared->optimizer->scalars[i]; i++) {
        prepared->scalars[i] = input_named(node, prepared->optimizer->scalars[i]);
        assert(prepared->scalars[i] >= 0);
    }
    prepared->indices = input_named(node, "indices");
    prepared->grad = input_named(node, "grad");
    if (prepared->grad < 0)
        prepared->grad = input_named(node, "delta");
    prepared->nesterov = node_attr_bool(node, "use_nesterov", false);
    prepared->update_slots = node_attr_bool(node, "update_slots", true);
    prepared->linear_by_lr = node_attr_bool(node, "multiply_linear_by_lr", false);
    *state = prepared;
    return true;
}

static bool find_variables(struct kernel_call *call, struct variable **variables, int count,
                           struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    bool by_ref = dtype_is_ref(call->node->input_types[0]);
    for (int i = 0; i < count; i++) {
        variables[i] = kernel_variable(call, i, err);
        if (!variables[i])
            return false;
        const struct tensor *value = &variables[i]->value;
        if (value->dtype == DTYPE_NONE)
            return fail(err, by_ref ? PRECONDITION : INTERNAL,
                        "variable '%s' has no value: it was not initialized",
                        variables[i]->name);
        if (value->dtype != variables[0]->value.dtype ||
            !shape_equal(&value->shape, &variables[0]->value.shape))
            return fail(err, INVALID, "variable '%s' has shape %s, its slot '%s' %s",
                        variables[0]->name,
                        shape_text(&variables[0]->value.shape, a, sizeof(a)),
                        variables[i]->name, shape_text(&value->shape, b, sizeof(b)));
    }
    return true;
}

static bool read_scalars(const struct kernel_call *call, const struct prepared *prepared,
                         double *scalars, struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    for (int i = 0; i < SCALARS_MAX && prepared->optimizer->scalars[i]; i++) {
        const struct tensor *scalar = kernel_in(call, prepared->scalars[i]);
        if (scalar->shape.rank != 0)
            return fail(err, INVALID, "%s is not a scalar : %s",
                        prepared->optimizer->scalars[i],
                        shape_text(&scalar->shape, text, sizeof(text)));
        scalars[i] = tensor_number(scalar, 0);
    }
    return true;
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
        for (int64_t i = 0; i < indices->count; i++) {
            int64_t index = tensor_integer(indices, i);
            if (index < 0 || index >= expected.dims[0])
                return fail(err, INVALID,
                            "Index %lld at offset %lld in indices is out of range",
                            (long long)index, (long long)i);
        }
        expected.dims[0] = indices->count;
    }
    return shape_equal(&expected, &grad->shape) ||
           fail(err, INVALID, "var and grad do not have the same shape %s %s",
                shape_text(&value->shape, a, sizeof(a)),
                shape_text(&grad->shape, b, sizeof(b)));
}

/* One row of elements: of the variables from `start`, of the gradient from `grad_start`. */
static void step_row(const struct prepared *prepared, struct variable *const *variables,
                     const struct tensor *grad, int64_t start, int64_t grad_start,
                     int64_t count, const double *scalars)
{
    double values[VARIABLES_MAX];
    kernel_load *load = kernel_load_for(grad->dtype);
    kernel_store *store = kernel_store_for(grad->dtype);
    struct step_input in = {.v = values,
                            .s = scalars,
                            .nesterov = prepared->nesterov,
                            .update_slots = prepared->update_slots,
                            .linear_by_lr = prepared->linear_by_lr};
    for (int64_t k = 0; k < count; k++) {
        for (int i = 0; i < prepared->optimizer->variables; i++)
            values[i] = load(variables[i]->value.data, start + k);
        in.g = load(grad->data, grad_start + k);
        prepared->optimizer->step(&in);
        for (int i = 0; i < prepared->optimizer->variables; i++)
            store(variables[i]->value.data, start + k, values[i]);
    }
}

static bool optimizer_run(struct kernel_call *call, struct error *err)
{
    const struct prepared *prepared = call->state;
    int count = prepared->optimizer->variables;
    struct variable *variables[VARIABLES_MAX];
    double scalars[SCALARS_MAX];
    if (!find_variables(call, variables, count, err) ||
        !read_scalars(call, prepared, scalars, err) ||
        !check_grad(call, prepared, &variables[0]->value, err))
        return false;
    const struct tensor *grad = kernel_in(call, prepared->grad);
    bool ok = true;
    for (int i = 0; i < count; i++)
        ok = ok && variable_make_exclusive(variables[i], err);
    pthread_mutex_lock(&variables[0]->lock);
    const struct tensor *value = &variables[0]->value;
    if (ok && prepared->indices < 0) {
        step_row(prepared, variables, grad, 0, 0, value->count, scalars);
    } else if (ok) {
        const struct tensor *indices = kernel_in(call, prepared->indices);
        int64_t row = kernel_span(&value->shape, 1, value->shape.rank);
        for (int64_t i = 0; i < indices->count; i++)
            step_row(prepared, variables, grad, tensor_integer(indices, i) * row, i * row, row,
                     scalars);
    }
    pthread_mutex_unlock(&variables[0]->lock);
    if (ok && dtype_is_ref(call->node->input_types[0]))
        kernel_output_ref(call, 0, variables[0]);
    return ok;
}

#define OPTIMIZER(name_)                                                                       \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = DTYPES_FLOAT, .prepare = optimizer_prepare,      \
        .release = free, .run = optimizer_run,                                                 \
    }

const struct kernel kernel_apply_ada_max_ref = OPTIMIZER("ApplyAdaMax");
const struct kernel kernel_resource_apply_ada_max_ref = OPTIMIZER("ResourceApplyAdaMax");
const struct kernel kernel_apply_adadelta_ref = OPTIMIZER("ApplyAdadelta");
const struct kernel kernel_resource_apply_adadelta_ref = OPTIMIZER("ResourceApplyAdadelta");
const struct kernel kernel_apply_adagrad_ref = OPTIMIZER("ApplyAdagrad");
const struct kernel kernel_resource_apply_adagrad_ref = OPTIMIZER("ResourceApplyAdagrad");
const struct kernel kernel_apply_adagrad_da_ref = OPTIMIZER("ApplyAdagradDA");
const struct kernel kernel_resource_apply_adagrad_da_ref = OPTIMIZER("ResourceApplyAdagradDA");
const struct kernel kernel_apply_adagrad_v2_ref = OPTIMIZER("ApplyAdagradV2");
const struct kernel kernel_resource_apply_adagrad_v2_ref = OPTIMIZER("ResourceApplyAdagradV2");
const struct kernel kernel_apply_adam_ref = OPTIMIZER("ApplyAdam");
const struct kernel kernel_resource_apply_adam_ref = OPTIMIZER("ResourceApplyAdam");
const struct kernel kernel_resource_apply_adam_with_amsgrad_ref =
    OPTIMIZER("ResourceApplyAdamWithAmsgrad");
const struct kernel kernel_apply_add_sign_ref = OPTIMIZER("ApplyAddSign");
const struct kernel kernel_resource_apply_add_sign_ref = OPTIMIZER("ResourceApplyAddSign");
const struct kernel kernel_apply_centered_rms_prop_ref = OPTIMIZER("ApplyCenteredRMSProp");
const struct kernel kernel_resource_apply_centered_rms_prop_ref =
    OPTIMIZER("ResourceApplyCenteredRMSProp");
const struct kernel kernel_apply_ftrl_ref = OPTIMIZER("ApplyFtrl");
const struct kernel kernel_resource_apply_ftrl_ref = OPTIMIZER("ResourceApplyFtrl");
const struct kernel kernel_apply_ftrl_v2_ref = OPTIMIZER("ApplyFtrlV2");
const struct kernel kernel_resource_apply_ftrl_v2_ref = OPTIMIZER("ResourceApplyFtrlV2");
const struct kernel kernel_apply_gradient_descent_ref = OPTIMIZER("ApplyGradientDescent");
const struct kernel kernel_resource_apply_gradient_descent_ref =
    OPTIMIZER("ResourceApplyGradientDescent");
const struct kernel kernel_resource_apply_keras_momentum_ref =
    OPTIMIZER("ResourceApplyKerasMomentum");
const struct kernel kernel_apply_momentum_ref = OPTIMIZER("ApplyMomentum");
const struct kernel kernel_resource_apply_momentum_ref = OPTIMIZER("ResourceApplyMomentum");
const struct kernel kernel_apply_power_sign_ref = OPTIMIZER("ApplyPowerSign");
const struct kernel kernel_resource_apply_power_sign_ref = OPTIMIZER("ResourceApplyPowerSign");
const struct kernel kernel_apply_proximal_adagrad_ref = OPTIMIZER("ApplyProximalAdagrad");
const struct kernel kernel_apply_proximal_gradient_descent_ref =
    OPTIMIZER("ApplyProximalGradientDescent");
const struct kernel kernel_apply_rms_prop_ref = OPTIMIZER("ApplyRMSProp");
const struct kernel kernel_resource_apply_rms_prop_ref = OPTIMIZER("ResourceApplyRMSProp");
const struct kernel kernel_resource_sparse_apply_adadelta_ref =
    OPTIMIZER("ResourceSparseApplyAdadelta");
const struct kernel kernel_sparse_apply_adadelta_ref = OPTIMIZER("SparseApplyAdadelta");
const struct kernel kernel_sparse_apply_adagrad_ref = OPTIMIZER("SparseApplyAdagrad");
const struct kernel kernel_resource_sparse_apply_adagrad_da_ref =
    OPTIMIZER("ResourceSparseApplyAdagradDA");
const struct kernel kernel_sparse_apply_adagrad_da_ref = OPTIMIZER("SparseApplyAdagradDA");
const struct kernel kernel_resource_sparse_apply_adagrad_v2_ref =
    OPTIMIZER("ResourceSparseApplyAdagradV2");
const struct kernel kernel_resource_sparse_apply_centered_rms_prop_ref =
    OPTIMIZER("ResourceSparseApplyCenteredRMSProp");
const struct kernel kernel_sparse_apply_centered_rms_prop_ref =
    OPTIMIZER("SparseApplyCenteredRMSProp");
const struct kernel kernel_resource_sparse_apply_ftrl_ref =
    OPTIMIZER("ResourceSparseApplyFtrl");
const struct kernel kernel_sparse_apply_ftrl_ref = OPTIMIZER("SparseApplyFtrl");
const struct kernel kernel_resource_sparse_apply_ftrl_v2_ref =
    OPTIMIZER("ResourceSparseApplyFtrlV2");
const struct kernel kernel_sparse_apply_ftrl_v2_ref = OPTIMIZER("SparseApplyFtrlV2");
const struct kernel kernel_resource_sparse_apply_keras_momentum_ref =
    OPTIMIZER("ResourceSparseApplyKerasMomentum");
const struct kernel kernel_resource_sparse_apply_momentum_ref =
    OPTIMIZER("ResourceSparseApplyMomentum");
const struct kernel kernel_resource_sparse_apply_proximal_adagrad_ref =
    OPTIMIZER("ResourceSparseApplyProximalAdagrad");
const struct kernel kernel_resource_sparse_apply_proximal_gradient_descent_ref =
    OPTIMIZER("ResourceSparseApplyProximalGradientDescent");
const struct kernel kernel_sparse_apply_proximal_gradient_descent_ref =
    OPTIMIZER("SparseApplyProximalGradientDescent");
const struct kernel kernel_resource_sparse_apply_rms_prop_ref =
    OPTIMIZER("ResourceSparseApplyRMSProp");
const struct kernel kernel_sparse_apply_rms_prop_ref = OPTIMIZER("SparseApplyRMSProp");
const struct kernel kernel_resource_apply_proximal_adagrad_ref =
    OPTIMIZER("ResourceApplyProximalAdagrad");
const struct kernel kernel_resource_apply_proximal_gradient_descent_ref =
    OPTIMIZER("ResourceApplyProximalGradientDescent");
const struct kernel kernel_resource_sparse_apply_adagrad_ref =
    OPTIMIZER("ResourceSparseApplyAdagrad");
const struct kernel kernel_sparse_apply_adagrad_v2_ref = OPTIMIZER("SparseApplyAdagradV2");
const struct kernel kernel_sparse_apply_momentum_ref = OPTIMIZER("SparseApplyMomentum");
const struct kernel kernel_sparse_apply_proximal_adagrad_ref =
    OPTIMIZER("SparseApplyProximalAdagrad");
