/* keras_test.c - ten losses of tiny trainings, as Keras has them (made by keras_losses.py). */

#include <math.h>

#include "base/arena.h"
#include "kernels/list.h"
#include "runtime/model/model.h"
#include "runtime/resource.h"
#include "runtime/session.h"
#include "runtime/spec/spec.h"
#include "tests/unit/test.h"

enum { BATCH = 4, STEPS = 10, CLASSES = 3 };

static double value(int64_t i, int64_t seed)
{
    return (double)((i * 7919 + seed * 104729) % 211) / 211.0 - 0.5;
}

static void use_kernels(void)
{
    static bool done;
    if (!done) {
        kernels_add(false);
        done = true;
    }
}

/* The trainable variables get the same values as in the script, all others start as they do. */
static void set_weights(struct session *session, const struct model *model)
{
    struct error err;
    const struct session_run init = {.targets = (const char *[]){MODEL_INIT},
                                     .targets_count = 1};
    CHECK_OK(session_run(session, &init, NULL, &err), &err);
    int seed = 0;
    for (int v = 0; v < model->variables_count; v++) {
        const struct model_variable *face = &model->variables[v];
        if (!face->trainable)
            continue;
        struct variable *variable = resources_variable(session_resources(session), "",
                                                       face->name, F32, &face->shape, &err);
        CHECK_OK(variable, &err);
        tensor_release(&variable->value);
        CHECK_OK(tensor_init(&variable->value, F32, &face->shape, &err), &err);
        for (int64_t i = 0; i < variable->value.count; i++)
            tensor_f32_mut(&variable->value)[i] = (float)value(i, seed);
        resource_unref(&variable->resource);
        seed++;
    }
}

static void make_batch(int64_t step, const struct shape *image, struct tensor feeds[2])
{
    struct error err;
    struct shape images = SHAPE(BATCH, image->dims[0], image->dims[1], image->dims[2]);
    CHECK_OK(tensor_init(&feeds[0], F32, &images, &err), &err);
    CHECK_OK(tensor_init(&feeds[1], I32, &SHAPE(BATCH), &err), &err);
    for (int64_t i = 0; i < feeds[0].count; i++)
        tensor_f32_mut(&feeds[0])[i] = (float)(value(i, 1000 + step) + 0.5);
    for (int64_t i = 0; i < BATCH; i++)
        ((int32_t *)feeds[1].data)[i] = (int32_t)((i * 5 + step * 7) % CLASSES);
}

static void check_losses(const char *text, struct shape image, const double expected[STEPS],
                         bool no_optimise)
{
    use_kernels();
    struct error err;
    struct arena *arena = arena_new();
    const struct spec *spec = spec_parse(arena, text, strlen(text), &err);
    CHECK_OK(spec, &err);
    struct model model;
    const struct model_feature images = {"images", F32, image};
    const struct model_data data = {.features = &images,
                                    .features_count = 1,
                                    .target = {"labels", I32, SHAPE_SCALAR},
                                    .classes = CLASSES};
    CHECK_OK(model_build(spec, &data, &model, &err), &err);
    struct session *session =
        session_new(&(struct session_options){.threads = 1, .no_optimise = no_optimise}, &err);
    CHECK_OK(session, &err);
    CHECK_OK(session_extend_graph(session, model.graph, &err), &err);
    set_weights(session, &model);
    const struct session_run run = {.feeds = (const char *[]){"images", "labels"},
                                    .feeds_count = 2,
                                    .fetches = (const char *[]){MODEL_LOSS},
                                    .fetches_count = 1,
                                    .targets = (const char *[]){MODEL_TRAIN},
                                    .targets_count = 1};
    struct callable *call = session_prepare(session, &run, &err);
    CHECK_OK(call, &err);
    for (int step = 0; step < STEPS; step++) {
        struct tensor feeds[2], loss;
        make_batch(step, &image, feeds);
        CHECK_OK(session_call(session, call, feeds, &loss, NULL, &err), &err);
        double got = tensor_number(&loss, 0);
        if (!(fabs(got - expected[step]) < 2e-5))
            CHECK_STOP("step %d: loss %.9g, Keras has %.9g", step, got, expected[step]);
        tensor_release(&loss);
        tensor_release(&feeds[0]);
        tensor_release(&feeds[1]);
    }
    session_free(session);
    model_release(&model);
    arena_free(arena);
}

#define SPEC(layers, optimizer)                                                                \
    "{\"model\": {\"layers\": [" layers                                                        \
    "]}, \"data\": {\"dataset\": \"x\", \"batch_size\": 4},"                                   \
    " \"train\": {\"optimizer\": {" optimizer "}}}"

#define MLP                                                                                    \
    "{\"layer\": \"Flatten\"}, {\"layer\": \"Dense\", \"units\": 8, \"activation\": "          \
    "\"relu\"},"                                                                               \
    "{\"layer\": \"Dense\", \"units\": 3}"

#define CNN                                                                                    \
    "{\"layer\": \"Conv2D\", \"filters\": 4, \"kernel_size\": 3, \"padding\": \"same\", "      \
    "\"activation\": \"relu\"},"                                                               \
    "{\"layer\": \"MaxPooling2D\"},"                                                           \
    "{\"layer\": \"Conv2D\", \"filters\": 5, \"kernel_size\": [2, 3], \"strides\": [1, 2], "   \
    "\"use_bias\": false,"                                                                     \
    " \"activation\": \"tanh\"},"                                                              \
    "{\"layer\": \"AveragePooling2D\", \"pool_size\": 2, \"strides\": 1, \"padding\": "        \
    "\"same\"},"                                                                               \
    "{\"layer\": \"Flatten\"}, {\"layer\": \"Dense\", \"units\": 6, \"activation\": "          \
    "\"sigmoid\"},"                                                                            \
    "{\"layer\": \"Dense\", \"units\": 3, \"activation\": \"softmax\"}"

#define WIDE                                                                                   \
    "{\"layer\": \"Dense\", \"units\": 5, \"activation\": \"elu\"}, {\"layer\": \"Flatten\"}," \
    "{\"layer\": \"Dense\", \"units\": 7, \"activation\": \"softplus\"},"                      \
    "{\"layer\": \"Activation\", \"activation\": \"softmax\"}, {\"layer\": \"Dense\", "        \
    "\"units\": 3}"

TEST(keras_mlp_sgd)
{
    static const double losses[STEPS] = {1.26595306, 1.0357002,  1.13965845, 1.2035563,
                                         1.07732785, 1.09330928, 1.08576608, 1.12459278,
                                         1.05682135, 1.09274614};
    const char *spec = SPEC(MLP, "\"name\": \"SGD\", \"learning_rate\": 0.1");
    check_losses(spec, SHAPE(4, 4, 1), losses, false);
    check_losses(spec, SHAPE(4, 4, 1), losses, true);
}

TEST(keras_mlp_momentum)
{
    static const double losses[STEPS] = {1.26595306, 1.03563797, 1.14040029, 1.19733787,
                                         1.0783788,  1.07815766, 1.03592288, 1.17604113,
                                         1.02867723, 1.03284132};
    check_losses(SPEC(MLP, "\"name\": \"SGD\", \"learning_rate\": 0.05, \"momentum\": 0.9"),
                 SHAPE(4, 4, 1), losses, false);
}

TEST(keras_mlp_nesterov)
{
    static const double losses[STEPS] = {1.26595306, 1.03567314, 1.13325155, 1.17772865,
                                         1.08946431, 1.07420969, 1.02556479, 1.18485165,
                                         1.03703642, 1.02425408};
    check_losses(SPEC(MLP, "\"name\": \"SGD\", \"learning_rate\": 0.05, \"momentum\": 0.9, "
                           "\"nesterov\": true"),
                 SHAPE(4, 4, 1), losses, false);
}

TEST(keras_cnn_adam)
{
    static const double losses[STEPS] = {1.12186074, 1.10565436, 1.06847644, 1.11039388,
                                         1.08958948, 1.0801934,  1.15057993, 1.15560865,
                                         1.12068784, 1.12146568};
    const char *spec = SPEC(CNN, "\"name\": \"Adam\", \"learning_rate\": 0.01");
    check_losses(spec, SHAPE(8, 8, 2), losses, false);
    check_losses(spec, SHAPE(8, 8, 2), losses, true);
}

TEST(keras_wide_adam)
{
    static const double losses[STEPS] = {1.0610857,  1.18251538, 1.12949538, 1.05493617,
                                         1.14761162, 1.12437046, 1.06385672, 1.12159634,
                                         1.11882055, 1.07896078};
    check_losses(
        SPEC(WIDE,
             "\"name\": \"Adam\", \"learning_rate\": 0.02, \"beta_1\": 0.8, \"beta_2\": 0.95,"
             " \"epsilon\": 0.001"),
        SHAPE(3, 2, 2), losses, false);
}
