/* cases.c - the table of cases, their data, and what all of them share; see cases.h. */

#include "tests/bench/cases.h"

#include "base/error.h"
#include "runtime/gradient.h"
#include "tests/bench/making.h"
#include "tests/bench/models.h"

const struct bench_case bench_cases[] = {
    {"softmax_reg", 100, 3.136e6, {784}, making_softmax, 0, BENCH_SGD},
    {"mlp", 100, 320.9216e6, {784}, making_perceptron, 512, BENCH_SGD},
    {"cnn512_sgd", 100, 7.2384512e9, {28, 28, 1}, making_network, 512, BENCH_SGD},
    {"cnn512_adam", 100, 7.2384512e9, {28, 28, 1}, making_network, 512, BENCH_ADAM},
    {"cnn1024_sgd", 100, 8.2049024e9, {28, 28, 1}, making_network, 1024, BENCH_SGD},
    {"cnn1024_adam", 100, 8.2049024e9, {28, 28, 1}, making_network, 1024, BENCH_ADAM},
    {"resnet20", 128, 31.02946099e9, {32, 32, 3}, making_resnet, 0, BENCH_MOMENTUM},
    {"lstm", 32, 6.643777536e9, {0}, NULL, 0, BENCH_ADAM},
    {"gpt", 12, 3.964207104e9, {0}, NULL, 0, BENCH_ADAM},
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

uint64_t bench_bits(uint64_t stream, uint64_t index)
{
    uint64_t x = (stream << 32) + index;
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

float bench_number(uint64_t stream, uint64_t index)
{
    return (float)(bench_bits(stream, index) >> 40) / 16777216.0f;
}

/* Of a batch. */
static struct shape images_of(const struct bench_case *c)
{
    struct shape shape = SHAPE(c->examples);
    for (int i = 0; i < ARRAY_LEN(c->image) && c->image[i]; i++)
        shape.dims[shape.rank++] = c->image[i];
    return shape;
}

bool bench_case_data(const struct bench_case *c, struct tensor *images, struct tensor *labels,
                     struct error *err)
{
    if (!c->logits)
        return bench_model_data(c, images, labels, err);
    struct shape image = images_of(c);
    if (!tensor_init(images, F32, &image, err) ||
        !tensor_init(labels, I32, &SHAPE(c->examples), err))
        return false;
    for (int64_t i = 0; i < images->count; i++)
        tensor_f32_mut(images)[i] = bench_number(0, (uint64_t)i);
    for (int64_t i = 0; i < labels->count; i++)
        tensor_set_number(labels, i, (double)(bench_bits(1, (uint64_t)i) % 10));
    return true;
}

static bool build(const struct bench_case *c, struct graph *graph, struct error *err)
{
    struct making m = {.b = {.graph = graph, .scope = "", .err = err}};
    struct shape image = images_of(c);
    struct edge x = builder_add(&m.b, "Placeholder", BENCH_IMAGES, NO_INPUTS,
                                ATTRS(attr_type("dtype", F32), attr_shape("shape", &image)));
    struct edge y =
        builder_add(&m.b, "Placeholder", BENCH_LABELS, NO_INPUTS,
                    ATTRS(attr_type("dtype", I32), attr_shape("shape", &SHAPE(c->examples))));
    struct edge losses =
        making_add(&m, "SparseSoftmaxCrossEntropyWithLogits", INPUTS(c->logits(&m, c, x), y));
    static const int64_t axis = 0;
    struct edge loss =
        builder_add(&m.b, "Mean", BENCH_LOSS,
                    INPUTS(losses, builder_ints(&m.b, "axes", I32, &axis, 1)), NO_ATTRS);
    if (!builder_ok(&m.b))
        return false;
    struct edge gradients[MAKING_VARIABLES_MAX];
    if (!gradient_build(graph, &loss, 1, NULL, m.handles, m.count, gradients, err))
        return false;
    making_optimizer(&m, c, gradients);
    builder_group(&m.b, BENCH_TRAIN, m.updates, m.updates_count);
    builder_group(&m.b, BENCH_INIT, m.starts, m.starts_count);
    return builder_ok(&m.b);
}

struct graph *bench_case_build(const struct bench_case *c, struct error *err)
{
    if (!c->logits)
        return bench_model_build(c, err);
    struct graph *graph = graph_new();
    if (build(c, graph, err))
        return graph;
    graph_free(graph);
    return NULL;
}
