/*
 * optimizer_steps.c - every optimizer as a function of one element: its variables (the weight
 * first, then the slots), its gradient and the scalars.
 */

#include <math.h>

#include "kernels/ref/optimizer.h"

static double sign(double x)
{
    return (x > 0) - (x < 0);
}

/* Moves towards zero by `by`, not past it. */
static double shrink(double x, double by)
{
    return sign(x) * fmax(fabs(x) - by, 0);
}

static void gradient_descent(const struct optimizer_input *in)
{
    in->v[0] -= in->s[0] * in->g;
}

static void momentum(const struct optimizer_input *in)
{
    double lr = in->s[0], mu = in->s[1];
    in->v[1] = in->v[1] * mu + in->g;
    in->v[0] -= in->flags.nesterov ? lr * in->g + lr * mu * in->v[1] : lr * in->v[1];
}

static void keras_momentum(const struct optimizer_input *in)
{
    double lr = in->s[0], mu = in->s[1];
    in->v[1] = in->v[1] * mu - lr * in->g;
    in->v[0] += in->flags.nesterov ? in->v[1] * mu - lr * in->g : in->v[1];
}

/* s: beta1_power beta2_power lr beta1 beta2 epsilon */
static void adam(const struct optimizer_input *in)
{
    double rate = in->s[2] * sqrt(1 - in->s[1]) / (1 - in->s[0]), b1 = in->s[3];
    in->v[1] += (in->g - in->v[1]) * (1 - b1);
    in->v[2] += (in->g * in->g - in->v[2]) * (1 - in->s[4]);
    double numerator = in->flags.nesterov ? in->g * (1 - b1) + b1 * in->v[1] : in->v[1];
    in->v[0] -= rate * numerator / (sqrt(in->v[2]) + in->s[5]);
}

static void amsgrad(const struct optimizer_input *in)
{
    double rate = in->s[2] * sqrt(1 - in->s[1]) / (1 - in->s[0]);
    in->v[1] += (in->g - in->v[1]) * (1 - in->s[3]);
    in->v[2] += (in->g * in->g - in->v[2]) * (1 - in->s[4]);
    in->v[3] = fmax(in->v[3], in->v[2]);
    in->v[0] -= rate * in->v[1] / (sqrt(in->v[3]) + in->s[5]);
}

/* s: beta1_power lr beta1 beta2 epsilon */
static void ada_max(const struct optimizer_input *in)
{
    in->v[1] += (in->g - in->v[1]) * (1 - in->s[2]);
    in->v[2] = fmax(in->s[3] * in->v[2], fabs(in->g));
    in->v[0] -= in->s[1] / (1 - in->s[0]) * in->v[1] / (in->v[2] + in->s[4]);
}

static void adagrad(const struct optimizer_input *in)
{
    if (in->flags.update_slots)
        in->v[1] += in->g * in->g;
    in->v[0] -= in->s[0] * in->g / sqrt(in->v[1]);
}

static void adagrad_v2(const struct optimizer_input *in)
{
    if (in->flags.update_slots)
        in->v[1] += in->g * in->g;
    in->v[0] -= in->s[0] * in->g / (sqrt(in->v[1]) + in->s[1]);
}

/* s: lr l1 l2 global_step */
static void adagrad_da(const struct optimizer_input *in)
{
    double lr = in->s[0], l1 = in->s[1], l2 = in->s[2], t = in->s[3];
    in->v[1] += in->g;
    in->v[2] += in->g * in->g;
    double gradients = l1 > 0 ? shrink(in->v[1], l1 * t) : in->v[1];
    in->v[0] = -lr * gradients / (l2 * t * lr + sqrt(in->v[2]));
}

/* s: lr rho epsilon */
static void adadelta(const struct optimizer_input *in)
{
    double lr = in->s[0], rho = in->s[1], epsilon = in->s[2];
    in->v[1] = rho * in->v[1] + (1 - rho) * in->g * in->g;
    double update = sqrt(in->v[2] + epsilon) / sqrt(in->v[1] + epsilon) * in->g;
    in->v[0] -= lr * update;
    in->v[2] = rho * in->v[2] + (1 - rho) * update * update;
}

/* s: lr rho momentum epsilon; v: var ms mom */
static void rms_prop(const struct optimizer_input *in)
{
    in->v[1] += (in->g * in->g - in->v[1]) * (1 - in->s[1]);
    in->v[2] = in->v[2] * in->s[2] + in->s[0] * in->g / sqrt(in->v[1] + in->s[3]);
    in->v[0] -= in->v[2];
}

/* v: var mg ms mom */
static void centered_rms_prop(const struct optimizer_input *in)
{
    double decay = 1 - in->s[1];
    in->v[2] += (in->g * in->g - in->v[2]) * decay;
    in->v[1] += (in->g - in->v[1]) * decay;
    double spread = in->v[2] - in->v[1] * in->v[1] + in->s[3];
    in->v[3] = in->v[3] * in->s[2] + in->s[0] * in->g / sqrt(spread);
    in->v[0] -= in->v[3];
}

/* v: var accum linear */
static void ftrl_step(const struct optimizer_input *in, double g, double lr, double l1,
                      double l2, double lr_power)
{
    double before = pow(in->v[1], -lr_power), squares = in->v[1] + in->g * in->g;
    double after = pow(squares, -lr_power);
    double threshold, denominator;
    if (in->flags.linear_by_lr) {
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
static void ftrl(const struct optimizer_input *in)
{
    ftrl_step(in, in->g, in->s[0], in->s[1], in->s[2], in->s[3]);
}

/* s: lr l1 l2 l2_shrinkage lr_power */
static void ftrl_v2(const struct optimizer_input *in)
{
    double g = in->g + 2 * in->s[3] * in->v[0];
    ftrl_step(in, g, in->s[0], in->s[1], in->s[2], in->s[4]);
}

/* s: alpha l1 l2 */
static void proximal_gradient_descent(const struct optimizer_input *in)
{
    double alpha = in->s[0], moved = in->v[0] - alpha * in->g;
    in->v[0] = shrink(moved, alpha * in->s[1]) / (1 + alpha * in->s[2]);
}

static void proximal_adagrad(const struct optimizer_input *in)
{
    in->v[1] += in->g * in->g;
    double alpha = in->s[0] / sqrt(in->v[1]), moved = in->v[0] - alpha * in->g;
    in->v[0] = shrink(moved, alpha * in->s[1]) / (1 + alpha * in->s[2]);
}

/* s: lr logbase sign_decay beta */
static void power_sign(const struct optimizer_input *in)
{
    in->v[1] = in->s[3] * in->v[1] + (1 - in->s[3]) * in->g;
    double agreement = sign(in->g) * sign(in->v[1]);
    in->v[0] -= in->s[0] * exp(in->s[1] * in->s[2] * agreement) * in->g;
}

/* s: lr alpha sign_decay beta */
static void add_sign(const struct optimizer_input *in)
{
    in->v[1] = in->s[3] * in->v[1] + (1 - in->s[3]) * in->g;
    double agreement = sign(in->g) * sign(in->v[1]);
    in->v[0] -= in->s[0] * (in->s[1] + in->s[2] * agreement) * in->g;
}

static const struct optimizer optimizers[] = {
    {"GradientDescent", 1, {"alpha"}, gradient_descent, kernel_complex_gradient_descent, false},
    {"Momentum", 2, {"lr", "momentum"}, momentum, kernel_complex_momentum, true},
    {"KerasMomentum",
     2,
     {"lr", "momentum"},
     keras_momentum,
     kernel_complex_keras_momentum,
     true},
    {"Adam",
     3,
     {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"},
     adam,
     kernel_complex_adam,
     false},
    {"AdamWithAmsgrad",
     4,
     {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"},
     amsgrad,
     NULL,
     false},
    {"AdaMax", 3, {"beta1_power", "lr", "beta1", "beta2", "epsilon"}, ada_max, NULL, false},
    {"Adagrad", 2, {"lr"}, adagrad, kernel_complex_adagrad, false},
    {"AdagradV2", 2, {"lr", "epsilon"}, adagrad_v2, kernel_complex_adagrad_v2, false},
    {"AdagradDA", 3, {"lr", "l1", "l2", "global_step"}, adagrad_da, NULL, true},
    {"Adadelta", 3, {"lr", "rho", "epsilon"}, adadelta, kernel_complex_adadelta, false},
    {"RMSProp",
     3,
     {"lr", "rho", "momentum", "epsilon"},
     rms_prop,
     kernel_complex_rms_prop,
     false},
    {"CenteredRMSProp",
     4,
     {"lr", "rho", "momentum", "epsilon"},
     centered_rms_prop,
     kernel_complex_centered_rms_prop,
     false},
    {"Ftrl", 3, {"lr", "l1", "l2", "lr_power"}, ftrl, NULL, true},
    {"FtrlV2", 3, {"lr", "l1", "l2", "l2_shrinkage", "lr_power"}, ftrl_v2, NULL, true},
    {"ProximalGradientDescent",
     1,
     {"alpha", "l1", "l2"},
     proximal_gradient_descent,
     NULL,
     true},
    {"ProximalAdagrad", 2, {"lr", "l1", "l2"}, proximal_adagrad, NULL, true},
    {"PowerSign", 2, {"lr", "logbase", "sign_decay", "beta"}, power_sign, NULL, false},
    {"AddSign", 2, {"lr", "alpha", "sign_decay", "beta"}, add_sign, NULL, false},
};

const struct optimizer *kernel_optimizer(const char *op)
{
    const char *apply = strstr(op, "Apply");
    assert(apply);
    for (int i = 0; i < ARRAY_LEN(optimizers); i++)
        if (strcmp(optimizers[i].name, apply + strlen("Apply")) == 0)
            return &optimizers[i];
    assert(!"an optimizer without a step");
    return NULL;
}
