/* optimizer_complex.c - the optimizers that TensorFlow has for complex variables too. */

#include "kernels/ref/optimizer.h"

void kernel_complex_gradient_descent(const struct optimizer_complex_input *in)
{
    in->v[0] -= in->s[0] * in->g;
}

void kernel_complex_momentum(const struct optimizer_complex_input *in)
{
    double complex lr = in->s[0], mu = in->s[1];
    in->v[1] = in->v[1] * mu + in->g;
    in->v[0] -= in->flags.nesterov ? lr * in->g + lr * mu * in->v[1] : lr * in->v[1];
}

void kernel_complex_keras_momentum(const struct optimizer_complex_input *in)
{
    double complex lr = in->s[0], mu = in->s[1];
    in->v[1] = in->v[1] * mu - lr * in->g;
    in->v[0] += in->flags.nesterov ? in->v[1] * mu - lr * in->g : in->v[1];
}

/* s: beta1_power beta2_power lr beta1 beta2 epsilon */
void kernel_complex_adam(const struct optimizer_complex_input *in)
{
    double complex rate = in->s[2] * csqrt(1 - in->s[1]) / (1 - in->s[0]), b1 = in->s[3];
    in->v[1] += (in->g - in->v[1]) * (1 - b1);
    in->v[2] += (in->g * in->g - in->v[2]) * (1 - in->s[4]);
    double complex numerator = in->flags.nesterov ? in->g * (1 - b1) + b1 * in->v[1] : in->v[1];
    in->v[0] -= rate * numerator / (csqrt(in->v[2]) + in->s[5]);
}

void kernel_complex_adagrad(const struct optimizer_complex_input *in)
{
    if (in->flags.update_slots)
        in->v[1] += in->g * in->g;
    in->v[0] -= in->s[0] * in->g / csqrt(in->v[1]);
}

void kernel_complex_adagrad_v2(const struct optimizer_complex_input *in)
{
    if (in->flags.update_slots)
        in->v[1] += in->g * in->g;
    in->v[0] -= in->s[0] * in->g / (csqrt(in->v[1]) + in->s[1]);
}

/* s: lr rho epsilon */
void kernel_complex_adadelta(const struct optimizer_complex_input *in)
{
    double complex rho = in->s[1], epsilon = in->s[2];
    in->v[1] = rho * in->v[1] + (1 - rho) * in->g * in->g;
    double complex update = csqrt(in->v[2] + epsilon) / csqrt(in->v[1] + epsilon) * in->g;
    in->v[0] -= in->s[0] * update;
    in->v[2] = rho * in->v[2] + (1 - rho) * update * update;
}

/* s: lr rho momentum epsilon; v: var ms mom */
void kernel_complex_rms_prop(const struct optimizer_complex_input *in)
{
    in->v[1] += (in->g * in->g - in->v[1]) * (1 - in->s[1]);
    in->v[2] = in->v[2] * in->s[2] + in->s[0] * in->g / csqrt(in->v[1] + in->s[3]);
    in->v[0] -= in->v[2];
}

/* v: var mg ms mom */
void kernel_complex_centered_rms_prop(const struct optimizer_complex_input *in)
{
    double complex decay = 1 - in->s[1];
    in->v[2] += (in->g * in->g - in->v[2]) * decay;
    in->v[1] += (in->g - in->v[1]) * decay;
    double complex spread = in->v[2] - in->v[1] * in->v[1] + in->s[3];
    in->v[3] = in->v[3] * in->s[2] + in->s[0] * in->g / csqrt(spread);
    in->v[0] -= in->v[3];
}
