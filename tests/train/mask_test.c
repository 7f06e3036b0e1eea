/* mask_test.c - steps that are not there change nothing: padded sequences give what short ones
 * do. */

#include <math.h>

#include "base/arena.h"
#include "kernels/list.h"
#include "runtime/model/model.h"
#include "runtime/resource.h"
#include "runtime/session.h"
#include "runtime/spec/spec.h"
#include "tests/unit/test.h"

enum { ROWS = 2, LONG = 6, SHORT = 4, CLASSES = 3 };

struct made {
    struct arena *arena;
    struct model model;
    struct session *session;
};

static void use_kernels(void)
{
    static bool done;
    if (!done)
        kernels_add(false);
    done = true;
}

/* The layers of `json` on sequences of `steps` tokens; every weight follows from its place. */
static struct made make(const char *json, int steps, bool each_step)
{
    struct error err;
    struct made made = {.arena = arena_new()};
    const char *text = arena_printf(
        made.arena,
        "{\"model\": {\"layers\": [{\"layer\": \"Embedding\", \"input_dim\": 9, "
        "\"output_dim\": 5, \"mask_zero\": true}, %s, {\"layer\": \"Dense\", \"units\": 3}]}, "
        "\"data\": {\"dataset\": \"x\", \"batch_size\": 2}, \"train\": {\"steps\": 1}}",
        json);
    use_kernels();
    const struct spec *spec = spec_parse(made.arena, text, strlen(text), &err);
    CHECK_OK(spec, &err);
    const struct model_feature tokens = {"tokens", I32, SHAPE(steps)};
    const struct model_data data = {
        .features = &tokens,
        .features_count = 1,
        .target = {"labels", I32, each_step ? SHAPE(steps) : SHAPE_SCALAR},
        .classes = CLASSES};
    CHECK_OK(model_build(spec, &data, &made.model, &err), &err);
    made.session = session_new(&(struct session_options){.threads = 1}, &err);
    CHECK_OK(made.session, &err);
    CHECK_OK(session_extend_graph(made.session, made.model.graph, &err), &err);
    const struct session_run init = {.targets = (const char *[]){MODEL_INIT},
                                     .targets_count = 1};
    CHECK_OK(session_run(made.session, &init, NULL, &err), &err);
    for (int v = 0; v < made.model.variables_count; v++) {
        const struct model_variable *face = &made.model.variables[v];
        if (!face->trainable)
            continue;
        struct variable *variable = resources_variable(session_resources(made.session), "",
                                                       face->name, F32, &face->shape, &err);
        CHECK_OK(variable, &err);
        for (int64_t i = 0; i < variable->value.count; i++)
            tensor_f32_mut(&variable->value)[i] =
                (float)sin((double)(i * 7 + (int64_t)strlen(face->name) * 3)) * 0.5f;
        resource_unref(&variable->resource);
    }
    return made;
}

static void drop(struct made *made)
{
    session_free(made->session);
    model_release(&made->model);
    arena_free(made->arena);
}

/* Two sequences of SHORT tokens, and zeros after them. */
static void feed(struct tensor *tokens, int steps)
{
    static const int32_t said[ROWS][SHORT] = {{3, 1, 4, 2}, {8, 5, 7, 6}};
    struct error err;
    CHECK_OK(tensor_init(tokens, I32, &SHAPE(ROWS, steps), &err), &err);
    for (int row = 0; row < ROWS; row++) {
        for (int t = 0; t < steps; t++)
            ((int32_t *)tokens->data)[row * steps + t] = t < SHORT ? said[row][t] : 0;
    }
}

static struct tensor predict(struct made *made, int steps)
{
    struct error err;
    struct tensor tokens, out;
    feed(&tokens, steps);
    const struct session_run run = {.feeds = (const char *[]){MODEL_EVAL "tokens"},
                                    .feed_values = &tokens,
                                    .feeds_count = 1,
                                    .fetches = &made->model.output,
                                    .fetches_count = 1};
    CHECK_OK(session_run(made->session, &run, &out, &err), &err);
    tensor_release(&tokens);
    return out;
}

static void check_padding(const char *layers)
{
    struct made padded = make(layers, LONG, false), shorter = make(layers, SHORT, false);
    struct tensor a = predict(&padded, LONG), b = predict(&shorter, SHORT);
    CHECK_INT(a.count, ROWS * CLASSES);
    for (int64_t i = 0; i < a.count; i++)
        CHECK(fabs((double)tensor_f32(&a)[i] - (double)tensor_f32(&b)[i]) < 1e-5);
    tensor_release(&a);
    tensor_release(&b);
    drop(&padded);
    drop(&shorter);
}

TEST(padding_does_not_reach_recurrent_layers)
{
    check_padding("{\"layer\": \"LSTM\", \"units\": 4}");
    check_padding("{\"layer\": \"GRU\", \"units\": 4, \"return_sequences\": true}, "
                  "{\"layer\": \"Dropout\", \"rate\": 0.5}, "
                  "{\"layer\": \"SimpleRNN\", \"units\": 4}");
    check_padding(
        "{\"layer\": \"Bidirectional\", \"wrapped\": {\"layer\": \"LSTM\", \"units\": "
        "4}}");
    check_padding("{\"layer\": \"GRU\", \"units\": 4, \"go_backwards\": true}");
}

TEST(padding_does_not_reach_means_and_attention)
{
    check_padding("{\"layer\": \"GlobalAveragePooling1D\"}");
    check_padding("{\"layer\": \"MultiHeadAttention\", \"num_heads\": 2, \"key_dim\": 3}, "
                  "{\"layer\": \"GlobalAveragePooling1D\"}");
    check_padding("{\"layer\": \"Attention\"}, {\"layer\": \"LSTM\", \"units\": 3}");
}

/* A layer that knows no masks ends them: then the padding counts. */
TEST(a_layer_without_masks_ends_them)
{
    static const char layers[] =
        "{\"layer\": \"UpSampling1D\", \"size\": 1}, {\"layer\": \"LSTM\", \"units\": 4}";
    struct made padded = make(layers, LONG, false), shorter = make(layers, SHORT, false);
    struct tensor a = predict(&padded, LONG), b = predict(&shorter, SHORT);
    double away = 0;
    for (int64_t i = 0; i < a.count; i++)
        away += fabs((double)tensor_f32(&a)[i] - (double)tensor_f32(&b)[i]);
    CHECK(away > 1e-4);
    tensor_release(&a);
    tensor_release(&b);
    drop(&padded);
    drop(&shorter);
}

static double loss_of_steps(int steps)
{
    struct error err;
    struct made made = make("{\"layer\": \"LayerNormalization\"}", steps, true);
    struct tensor feeds[2], loss;
    feed(&feeds[0], steps);
    CHECK_OK(tensor_init(&feeds[1], I32, &SHAPE(ROWS, steps), &err), &err);
    for (int64_t i = 0; i < feeds[1].count; i++)
        ((int32_t *)feeds[1].data)[i] = (int32_t)(i % steps) % CLASSES;
    const char *fetches[] = {MODEL_LOSS};
    const struct session_run run = {.feeds = (const char *[]){"tokens", "labels"},
                                    .feed_values = feeds,
                                    .feeds_count = 2,
                                    .fetches = fetches,
                                    .fetches_count = 1};
    CHECK_OK(session_run(made.session, &run, &loss, &err), &err);
    double value = (double)tensor_f32(&loss)[0];
    for (int i = 0; i < 2; i++)
        tensor_release(&feeds[i]);
    tensor_release(&loss);
    drop(&made);
    return value;
}

TEST(the_loss_is_the_mean_over_the_steps_that_are_there)
{
    CHECK(fabs(loss_of_steps(LONG) - loss_of_steps(SHORT)) < 1e-6);
}
