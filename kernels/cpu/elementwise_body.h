/*
 * elementwise_body.h - one result per element: arithmetic, functions, optimizer updates, sums;
 * see isa.h.
 *
 * Loops go vector by vector; the last one may be partial.  Outputs may be the inputs.
 */

INLINE vec binary_of(const enum isa_binary operation, vec a, vec b)
{
    switch (operation) {
    case ISA_ADD:
        return a + b;
    case ISA_SUB:
        return a - b;
    case ISA_MUL:
        return a * b;
    case ISA_DIV:
        return a / b;
    case ISA_MAXIMUM:
        return larger(a, b);
    case ISA_MINIMUM:
        return smaller(a, b);
    case ISA_SQUARED_DIFFERENCE:
        return (a - b) * (a - b);
    case ISA_RELU_GRAD:
        return relu_grad(a, b);
    case ISA_GREATER:
        return choose(a > b, splat(1), (vec){0});
    case ISA_GREATER_EQUAL:
        return choose(a >= b, splat(1), (vec){0});
    case ISA_LESS:
        return choose(a < b, splat(1), (vec){0});
    case ISA_LESS_EQUAL:
        return choose(a <= b, splat(1), (vec){0});
    case ISA_BINARIES:
        break;
    }
    return a;
}

INLINE void binary_loop(const enum isa_binary operation, int64_t count, const float *a,
                        bool a_scalar, const float *b, bool b_scalar, float *out)
{
    vec x = splat(*a), y = splat(*b);
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        store(out + i,
              binary_of(operation, a_scalar ? x : load(a + i), b_scalar ? y : load(b + i)));
    if (i < count)
        store_part(out + i, count - i,
                   binary_of(operation, a_scalar ? x : load_part(a + i, count - i, 1),
                             b_scalar ? y : load_part(b + i, count - i, 1)));
}

#define BINARY_CASE(operation)                                                                 \
    case operation:                                                                            \
        if (a_scalar)                                                                          \
            binary_loop(operation, count, a, true, b, false, out);                             \
        else if (b_scalar)                                                                     \
            binary_loop(operation, count, a, false, b, true, out);                             \
        else                                                                                   \
            binary_loop(operation, count, a, false, b, false, out);                            \
        break;

static void binary(enum isa_binary operation, int64_t count, const float *a, bool a_scalar,
                   const float *b, bool b_scalar, float *out)
{
    if (count == 0)
        return;
    switch (operation) {
        BINARY_CASE(ISA_ADD)
        BINARY_CASE(ISA_SUB)
        BINARY_CASE(ISA_MUL)
        BINARY_CASE(ISA_DIV)
        BINARY_CASE(ISA_MAXIMUM)
        BINARY_CASE(ISA_MINIMUM)
        BINARY_CASE(ISA_SQUARED_DIFFERENCE)
        BINARY_CASE(ISA_RELU_GRAD)
        BINARY_CASE(ISA_GREATER)
        BINARY_CASE(ISA_GREATER_EQUAL)
        BINARY_CASE(ISA_LESS)
        BINARY_CASE(ISA_LESS_EQUAL)
    case ISA_BINARIES:
        break;
    }
}

/* tanh: the odd polynomial near 0, where 1 - 2 / (e^2x + 1) would cancel. */
INLINE vec hyperbolic_tangent(vec x)
{
    vec far = 1.0f - 2.0f / (exponential(x + x) + 1.0f);
    vec s = x * x;
    vec p = s * -5.70498872745e-3f + 2.06390887954e-2f;
    p = p * s + -5.37397155531e-2f;
    p = p * s + 1.33314422036e-1f;
    p = p * s + -3.33332819422e-1f;
    vec near = p * s * x + x;
    return choose((x < 0.625f) & (x > -0.625f), near, far);
}

INLINE vec unary_of(const enum isa_unary operation, vec x)
{
    switch (operation) {
    case ISA_NEG:
        return -x;
    case ISA_ABS:
        return (vec)((ivec)x & 0x7fffffff);
    case ISA_SQUARE:
        return x * x;
    case ISA_SQRT:
        return root(x);
    case ISA_RSQRT:
        return 1.0f / root(x);
    case ISA_RECIPROCAL:
        return 1.0f / x;
    case ISA_RELU:
        return choose(x < 0, (vec){0}, x); /* a NaN stays */
    case ISA_EXP:
        return exponential(x);
    case ISA_LOG:
        return logarithm(x);
    case ISA_TANH:
        return hyperbolic_tangent(x);
    case ISA_SIGMOID:
        return 1.0f / (1.0f + exponential(-x));
    case ISA_COPY:
    case ISA_UNARIES:
        break;
    }
    return x;
}

INLINE void unary_loop(const enum isa_unary operation, int64_t count, const float *x,
                       float *out)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        store(out + i, unary_of(operation, load(x + i)));
    if (i < count)
        store_part(out + i, count - i, unary_of(operation, load_part(x + i, count - i, 1)));
}

#define UNARY_CASE(operation)                                                                  \
    case operation:                                                                            \
        unary_loop(operation, count, x, out);                                                  \
        break;

static void unary(enum isa_unary operation, int64_t count, const float *x, float *out)
{
    switch (operation) {
        UNARY_CASE(ISA_NEG)
        UNARY_CASE(ISA_ABS)
        UNARY_CASE(ISA_SQUARE)
        UNARY_CASE(ISA_SQRT)
        UNARY_CASE(ISA_RSQRT)
        UNARY_CASE(ISA_RECIPROCAL)
        UNARY_CASE(ISA_RELU)
        UNARY_CASE(ISA_EXP)
        UNARY_CASE(ISA_LOG)
        UNARY_CASE(ISA_TANH)
        UNARY_CASE(ISA_SIGMOID)
        UNARY_CASE(ISA_COPY)
    case ISA_UNARIES:
        break;
    }
}

static void scale_add(int64_t count, float scale, const float *x, float *y)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        store(y + i, load(y + i) + load(x + i) * scale);
    if (i < count)
        store_part(y + i, count - i,
                   load_part(y + i, count - i, 0) + load_part(x + i, count - i, 0) * scale);
}

static void momentum(int64_t count, float lr, float rate, bool nesterov, const float *grad,
                     float *accum, float *var)
{
    for (int64_t i = 0; i < count; i += LANES) {
        int64_t left = count - i;
        vec g = load_part(grad + i, left, 0);
        vec a = load_part(accum + i, left, 0) * rate + g;
        vec w = load_part(var + i, left, 0);
        w -= nesterov ? g * lr + a * rate * lr : a * lr;
        store_part(accum + i, left, a);
        store_part(var + i, left, w);
    }
}

static void keras_momentum(int64_t count, float lr, float rate, bool nesterov,
                           const float *grad, float *accum, float *var)
{
    for (int64_t i = 0; i < count; i += LANES) {
        int64_t left = count - i;
        vec g = load_part(grad + i, left, 0);
        vec a = load_part(accum + i, left, 0) * rate - g * lr;
        vec w = load_part(var + i, left, 0);
        w += nesterov ? a * rate - g * lr : a;
        store_part(accum + i, left, a);
        store_part(var + i, left, w);
    }
}

static void adam(int64_t count, const struct isa_adam *rule, const float *grad, float *m,
                 float *v, float *var)
{
    const float keep1 = 1 - rule->beta1;
    const float keep2 = 1 - rule->beta2;
    for (int64_t i = 0; i < count; i += LANES) {
        int64_t left = count - i;
        vec g = load_part(grad + i, left, 0);
        vec first = load_part(m + i, left, 0);
        vec second = load_part(v + i, left, 0);
        first += (g - first) * keep1;
        second += (g * g - second) * keep2;
        vec step = rule->nesterov ? g * keep1 + first * rule->beta1 : first;
        vec w = load_part(var + i, left, 0);
        w -= step * rule->alpha / (root(second) + rule->epsilon);
        store_part(m + i, left, first);
        store_part(v + i, left, second);
        store_part(var + i, left, w);
    }
}

static float sum(int64_t count, const float *x)
{
    vec s[4] = {{0}, {0}, {0}, {0}};
    int64_t i = 0;
    for (; i + 4 * LANES <= count; i += 4 * LANES)
        for (int k = 0; k < 4; k++)
            s[k] += load(x + i + k * LANES);
    for (; i < count; i += LANES)
        s[0] += load_part(x + i, count - i, 0);
    return lanes_sum((s[0] + s[1]) + (s[2] + s[3]));
}

static float maximum(int64_t count, const float *x)
{
    vec best = splat(-INFINITY);
    for (int64_t i = 0; i < count; i += LANES)
        best = larger(best, load_part(x + i, count - i, -INFINITY));
    return lanes_maximum(best);
}
