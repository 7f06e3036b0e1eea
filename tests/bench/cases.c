/* cases.c - softmax regression, a perceptron and a convolutional network, as graphs; see
 * cases.h. */

#include "tests/bench/cases.h"

#include <math.h>

#include "base/arena.h"
#include "base/error.h"
#include "runtime/gradient.h"

enum { SOFTMAX, MLP, CNN };
enum { BATCH = 100, VARIABLES_MAX = 8 };

const struct bench_case bench_cases[] = {
    {"softmax_reg", BATCH, 3.136e6, SOFTMAX, 0, false},
    {"mlp", BATCH, 320.9216e6, MLP, 512, false},
    {"cnn512_sgd", BATCH, 7.2384512e9, CNN, 512, false},
    {"cnn512_adam", BATCH, 7.2384512e9, CNN, 512, true},
    {"cnn1024_sgd", BATCH, 8.2049024e9, CNN, 1024, false},
    {"cnn1024_adam", BATCH, 8.2049024e9, CNN, 1024, true},
    {0},
};

const struct bench_case *bench_case_find(const char *name)
{
    for (const struct bench_case *c = bench_cases; c->name; c++) {
        if (!strcmp(c->name, name))
            return c;
    }
    return NULL;
}

static uint64_t mix(uint64_t stream, uint64_t index)
{
    uint64_t x = (stream << 32) + index;
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

float bench_number(uint64_t stream, uint64_t index)
{
    return (float)(mix(stream, index) >> 40) / 16777216.0f;
}

bool bench_case_data(const struct bench_case *c, struct tensor *images, struct tensor *labels,
                     struct error *err)
{
    struct shape image = c->kind == CNN ? SHAPE(BATCH, 28, 28, 1) : SHAPE(BATCH, 784);
    if (!tensor_init(images, F32, &image, err) || !tensor_init(labels, I32, &SHAPE(BATCH), err))
        return false;
    for (int64_t i = 0; i < images->count; i++)
        tensor_f32_mut(images)[i] = bench_number(0, (uint64_t)i);
    for (int64_t i = 0; i < labels->count; i++)
        tensor_set_number(labels, i, (double)(mix(1, (uint64_t)i) % 10));
    return true;
}

/* --- a model in the making --- */

struct making {
    struct builder b;
    struct edge handles[VARIABLES_MAX]; /* trained variables */
    int count;
    struct node *starts[4 * VARIABLES_MAX];
    int starts_count;
};

static struct edge add(struct making *m, const char *op, const struct edge *inputs, int count)
{
    return builder_add(&m->b, op, op, inputs, count, NO_ATTRS);
}

/* A variable that starts as `value`, which is released. */
static struct edge variable(struct making *m, const char *name, struct tensor *value)
{
    struct edge handle =
        builder_add(&m->b, "VarHandleOp", name, NO_INPUTS,
                    ATTRS(attr_type("dtype", F32), attr_shape("shape", &value->shape),
                          attr_string("shared_name", name)));
    struct edge start = builder_const(&m->b, "start", value);
    struct edge assign = builder_add(&m->b, "AssignVariableOp", "start/Assign",
                                     INPUTS(handle, start), ATTRS(attr_type("dtype", F32)));
    m->starts[m->starts_count++] = assign.from;
    tensor_release(value);
    return handle;
}

static struct edge zeros(struct making *m, const char *name, const struct shape *shape)
{
    struct tensor value;
    if (!tensor_init(&value, F32, shape, m->b.err)) {
        m->b.failed = true;
        return (struct edge){0};
    }
    memset(value.data, 0, (size_t)value.count * sizeof(float));
    return variable(m, name, &value);
}

static struct edge read_variable(struct making *m, struct edge handle)
{
    return builder_add(&m->b, "ReadVariableOp", "read", INPUTS(handle),
                       ATTRS(attr_type("dtype", F32)));
}

/* Uniform between -1/sqrt(fan in) and that; the stream is that of the variable's number. */
static struct edge weights(struct making *m, const struct shape *shape)
{
    char name[16];
    snprintf(name, sizeof(name), "w%d", m->count);
    int64_t fan = 1;
    for (int i = 0; i < shape->rank - 1; i++)
        fan *= shape->dims[i];
    float scale = (float)(1 / sqrt((double)fan));
    struct tensor value;
    if (!tensor_init(&value, F32, shape, m->b.err)) {
        m->b.failed = true;
        return (struct edge){0};
    }
    for (int64_t i = 0; i < value.count; i++)
        tensor_f32_mut(&value)[i] =
            (bench_number(2 + (uint64_t)m->count, (uint64_t)i) * 2 - 1) * scale;
    struct edge handle = variable(m, name, &value);
    m->handles[m->count++] = handle;
    return read_variable(m, handle);
}

static struct edge biases(struct making *m, int64_t count)
{
    char name[16];
    snprintf(name, sizeof(name), "b%d", m->count);
    struct edge handle = zeros(m, name, &SHAPE(count));
    m->handles[m->count++] = handle;
    return read_variable(m, handle);
}

static struct edge dense(struct making *m, struct edge x, int64_t in, int64_t out)
{
    struct edge product = add(m, "MatMul", INPUTS(x, weights(m, &SHAPE(in, out))));
    return add(m, "BiasAdd", INPUTS(product, biases(m, out)));
}

/* 5x5, then Relu and 2x2 pooling. */
static struct edge convolution(struct making *m, struct edge x, int64_t in, int64_t out)
{
    static const int64_t ones[] = {1, 1, 1, 1}, two[] = {1, 2, 2, 1};
    struct edge y =
        builder_add(&m->b, "Conv2D", "conv", INPUTS(x, weights(m, &SHAPE(5, 5, in, out))),
                    ATTRS(attr_int_list("strides", ones, 4), attr_string("padding", "SAME")));
    y = add(m, "Relu", INPUTS(add(m, "BiasAdd", INPUTS(y, biases(m, out)))));
    return builder_add(&m->b, "MaxPool", "pool", INPUTS(y),
                       ATTRS(attr_int_list("ksize", two, 4), attr_int_list("strides", two, 4),
                             attr_string("padding", "VALID")));
}

static struct edge logits(struct making *m, const struct bench_case *c, struct edge x)
{
    if (c->kind == SOFTMAX)
        return dense(m, x, 784, 10);
    if (c->kind == MLP) {
        x = add(m, "Relu", INPUTS(dense(m, x, 784, c->hidden)));
        x = add(m, "Relu", INPUTS(dense(m, x, c->hidden, c->hidden)));
        return dense(m, x, c->hidden, 10);
    }
    x = convolution(m, convolution(m, x, 1, 32), 32, 64);
    static const int64_t flat[] = {BATCH, 3136};
    x = add(m, "Reshape", INPUTS(x, builder_ints(&m->b, "flat", I32, flat, 2)));
    x = add(m, "Relu", INPUTS(dense(m, x, 3136, c->hidden)));
    return dense(m, x, c->hidden, 10);
}

/* --- optimizers --- */

static void descend(struct making *m, const struct edge *gradients, struct node **updates)
{
    struct edge rate = builder_scalar(&m->b, "rate", F32, 0.01);
    for (int i = 0; i < m->count; i++)
        updates[i] =
            add(m, "ResourceApplyGradientDescent", INPUTS(m->handles[i], rate, gradients[i]))
                .from;
}

/* The next power of beta, and its assignment. */
static struct edge power(struct making *m, const char *name, struct edge beta,
                         struct node **update)
{
    struct tensor one;
    if (!tensor_init_scalar(&one, F32, 1, m->b.err)) {
        m->b.failed = true;
        return (struct edge){0};
    }
    struct edge handle = variable(m, name, &one);
    struct edge next = add(m, "Mul", INPUTS(read_variable(m, handle), beta));
    *update = builder_add(&m->b, "AssignVariableOp", "advance", INPUTS(handle, next),
                          ATTRS(attr_type("dtype", F32)))
                  .from;
    return next;
}

static int adam(struct making *m, const struct edge *gradients, const struct shape *shapes,
                struct node **updates)
{
    struct edge rate = builder_scalar(&m->b, "rate", F32, 1e-3);
    struct edge beta1 = builder_scalar(&m->b, "beta1", F32, 0.9);
    struct edge beta2 = builder_scalar(&m->b, "beta2", F32, 0.999);
    struct edge epsilon = builder_scalar(&m->b, "epsilon", F32, 1e-8);
    struct edge power1 = power(m, "power1", beta1, &updates[0]);
    struct edge power2 = power(m, "power2", beta2, &updates[1]);
    for (int i = 0; i < m->count; i++) {
        char first[16], second[16];
        snprintf(first, sizeof(first), "m%d", i);
        snprintf(second, sizeof(second), "v%d", i);
        updates[2 + i] =
            add(m, "ResourceApplyAdam",
                INPUTS(m->handles[i], zeros(m, first, &shapes[i]), zeros(m, second, &shapes[i]),
                       power1, power2, rate, beta1, beta2, epsilon, gradients[i]))
                .from;
    }
    return 2 + m->count;
}

bool bench_case_build(const struct bench_case *c, struct graph *graph, struct error *err)
{
    struct making m = {.b = {.graph = graph, .scope = "", .err = err}};
    struct shape image = c->kind == CNN ? SHAPE(BATCH, 28, 28, 1) : SHAPE(BATCH, 784);
    struct edge x = builder_add(&m.b, "Placeholder", BENCH_IMAGES, NO_INPUTS,
                                ATTRS(attr_type("dtype", F32), attr_shape("shape", &image)));
    struct edge y =
        builder_add(&m.b, "Placeholder", BENCH_LABELS, NO_INPUTS,
                    ATTRS(attr_type("dtype", I32), attr_shape("shape", &SHAPE(BATCH))));
    struct edge losses =
        add(&m, "SparseSoftmaxCrossEntropyWithLogits", INPUTS(logits(&m, c, x), y));
    static const int64_t axis = 0;
    struct edge loss =
        builder_add(&m.b, "Mean", BENCH_LOSS,
                    INPUTS(losses, builder_ints(&m.b, "axes", I32, &axis, 1)), NO_ATTRS);
    if (!builder_ok(&m.b))
        return false;
    struct edge gradients[VARIABLES_MAX];
    if (!gradient_build(graph, &loss, 1, NULL, m.handles, m.count, gradients, err))
        return false;
    struct shape shapes[VARIABLES_MAX];
    for (int i = 0; i < m.count; i++)
        shapes[i] = *node_attr_shape(m.handles[i].from, "shape");
    struct node *updates[VARIABLES_MAX + 2];
    int count = m.count;
    if (c->adam)
        count = adam(&m, gradients, shapes, updates);
    else
        descend(&m, gradients, updates);
    builder_group(&m.b, BENCH_TRAIN, updates, count);
    builder_group(&m.b, BENCH_INIT, m.starts, m.starts_count);
    return builder_ok(&m.b);
}
