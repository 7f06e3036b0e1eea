/* model_test.c - what layers become: shapes, parameters, and a graph. */

#include "base/arena.h"
#include "base/str.h"
#include "runtime/graph.h"
#include "runtime/model/model.h"
#include "runtime/op.h"
#include "runtime/spec/spec.h"
#include "runtime/tensor.h"
#include "tests/unit/test.h"

#define SPEC(layers)                                                                           \
    "{\"model\": {\"layers\": [" layers "]}, \"data\": {\"dataset\": \"mnist\"}}"
#define DENSE "{\"layer\": \"Dense\", \"units\": 10}"

static const struct spec *parse(struct arena *arena, const char *text)
{
    struct error err;
    const struct spec *spec = spec_parse(arena, text, strlen(text), &err);
    if (!spec)
        CHECK_STOP("%s: %s: %s", text, err.pointer, err.text);
    return spec;
}

/* Images of that shape with the numbers of classes. */
static const struct model_data *images(const struct shape *shape, int64_t classes)
{
    static struct model_feature feature;
    static struct model_data data;
    feature = (struct model_feature){"images", F32, *shape};
    data = (struct model_data){.features = &feature,
                               .features_count = 1,
                               .target = {"labels", I32, SHAPE_SCALAR},
                               .classes = classes};
    return &data;
}

/* The counts that Keras prints for this model. */
TEST(summary_counts_as_keras_does)
{
    struct arena *arena = arena_new();
    struct model_summary summary;
    struct error err;
    const struct spec *spec = parse(arena, spec_example_find("mnist-cnn")->json);
    CHECK_OK(model_summary(spec, images(&SHAPE(28, 28, 1), 10), arena, &summary, &err), &err);
    CHECK_INT(summary.layers[0].parameters, 832);
    CHECK_INT(summary.layers[2].parameters, 51264);
    CHECK(shape_equal(&summary.layers[3].output, &SHAPE(7, 7, 64)));
    CHECK(shape_equal(&summary.layers[5].output, &SHAPE(3136)));
    CHECK_INT(summary.layers[6].parameters, 1606144);
    CHECK_INT(summary.parameters, 832 + 51264 + 1606144 + 5130);
    CHECK_TEXT(summary.layers[1].class_name, "MaxPooling2D");
    CHECK_TEXT(summary.layers[1].name, "max_pooling2d");
    arena_free(arena);
}

TEST(summary_follows_padding_and_strides)
{
    struct arena *arena = arena_new();
    struct model_summary summary;
    struct error err;
    const struct spec *spec = parse(
        arena, SPEC("{\"layer\": \"Conv2D\", \"filters\": 4, \"kernel_size\": [5, 3], "
                    "\"strides\": [2, 3]},"
                    "{\"layer\": \"MaxPooling2D\", \"pool_size\": 2, \"strides\": 3, "
                    "\"padding\": \"same\"},"
                    "{\"layer\": \"Dense\", \"units\": 6}, {\"layer\": \"Flatten\"}," DENSE));
    CHECK_OK(model_summary(spec, images(&SHAPE(28, 27, 3), 0), arena, &summary, &err), &err);
    CHECK(shape_equal(&summary.layers[0].output, &SHAPE(12, 9, 4)));
    CHECK_INT(summary.layers[0].parameters, 5 * 3 * 3 * 4 + 4);
    CHECK(shape_equal(&summary.layers[1].output, &SHAPE(4, 3, 4)));
    CHECK(shape_equal(&summary.layers[2].output, &SHAPE(4, 3, 6)));
    CHECK_INT(summary.layers[2].parameters, 4 * 6 + 6);
    arena_free(arena);
}

/* What a layer after it needs to know: padding is no secret of the run. */
TEST(summary_knows_sizes_after_zero_padding)
{
    struct arena *arena = arena_new();
    struct model_summary summary;
    struct error err;
    const struct spec *spec =
        parse(arena, SPEC("{\"layer\": \"ZeroPadding2D\", \"padding\": [[1, 2], [0, 3]]}, "
                          "{\"layer\": \"Flatten\"}, " DENSE));
    CHECK_OK(model_summary(spec, images(&SHAPE(8, 8, 3), 10), arena, &summary, &err), &err);
    CHECK(shape_equal(&summary.layers[0].output, &SHAPE(11, 11, 3)));
    arena_free(arena);
}

/* What is made known from constants in part: the result of a convolution back, the last of
 * TopK. */
TEST(summary_knows_sizes_that_ops_are_told)
{
    struct arena *arena = arena_new();
    struct model model;
    struct error err;
    const struct spec *spec = parse(
        arena, SPEC("{\"layer\": \"Conv2DTranspose\", \"filters\": 2, \"kernel_size\": 3, "
                    "\"strides\": 2, \"padding\": \"same\"},"
                    "{\"layer\": \"Conv2D\", \"filters\": 3, \"kernel_size\": 3},"
                    "{\"layer\": \"Activation\", \"activation\": \"sparsemax\"},"
                    "{\"layer\": \"Flatten\"}," DENSE));
    CHECK_OK(model_build(spec, images(&SHAPE(5, 4, 3), 10), &model, &err), &err);
    CHECK(shape_equal(&model.summary.layers[0].output, &SHAPE(10, 8, 2)));
    CHECK(shape_equal(&model.summary.layers[2].output, &SHAPE(8, 6, 3)));
    model_release(&model);
    arena_free(arena);
}

TEST(summary_names_the_layer_that_does_not_fit)
{
    static const struct {
        const char *spec;
        const char *pointer;
        const char *text;
    } cases[] = {
        {SPEC("{\"layer\": \"Flatten\"}, {\"layer\": \"Conv2D\", \"filters\": 1, "
              "\"kernel_size\": 3}," DENSE),
         "/model/layers/1", "gets [784] for each example, wanted: height, width, channels"},
        {SPEC("{\"layer\": \"Conv2D\", \"filters\": 1, \"kernel_size\": 29}," DENSE),
         "/model/layers/0", "at least 29x29"},
        {SPEC(DENSE), "/model/layers/0", "put Flatten before"},
        {SPEC("{\"layer\": \"Flatten\"}, {\"layer\": \"Dense\", \"units\": 9}"),
         "/model/layers/1", "gives [9] for each example, wanted: at least the 10 classes"},
        {SPEC("{\"layer\": \"Conv2D\", \"filters\": 10000000, \"kernel_size\": 9999, "
              "\"padding\": \"same\"}"),
         "/model/layers/0", "the variable \"conv2d/kernel\" would be"},
        {SPEC("{\"layer\": \"Flatten\"}, {\"layer\": \"Dense\", \"units\": 10000000},"
              "{\"layer\": \"Dense\", \"units\": 10000000}"),
         "/model/layers/2", "allowed: 68719476736 bytes"},
    };
    for (int i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena *arena = arena_new();
        struct model_summary summary;
        struct error err;
        const struct spec *spec = parse(arena, cases[i].spec);
        CHECK(!model_summary(spec, images(&SHAPE(28, 28, 1), 10), arena, &summary, &err));
        if (strcmp(err.pointer, cases[i].pointer) || !strstr(err.text, cases[i].text))
            CHECK_STOP("%s gives %s: %s", cases[i].spec, err.pointer, err.text);
        arena_free(arena);
    }
}

static void build_text(const char *text, struct str *out)
{
    struct arena *arena = arena_new();
    struct model model;
    struct error err;
    CHECK_OK(model_build(parse(arena, text), images(&SHAPE(28, 28, 1), 10), &model, &err),
             &err);
    graph_export(model.graph, false, 0, out);
    model_release(&model);
    arena_free(arena);
}

/* Variables are named as in Keras, slots as in TensorFlow; what the loop asks for is there. */
TEST(model_has_the_names_that_others_know)
{
    static const char *const nodes[] = {"images",
                                        "labels",
                                        MODEL_LOSS,
                                        MODEL_STEP,
                                        MODEL_TRAIN,
                                        MODEL_INIT,
                                        "eval/images",
                                        "eval/predictions",
                                        "conv2d/Conv2D",
                                        "conv2d/BiasAdd",
                                        "conv2d/Relu",
                                        "max_pooling2d/MaxPool",
                                        "dense/MatMul",
                                        "flatten/Reshape",
                                        "eval/dense/MatMul",
                                        "dropout/dropout/random_uniform"};
    static const char *const variables[] = {"conv2d/kernel",      "conv2d/bias",
                                            "dense_1/bias",       "global_step",
                                            "conv2d/kernel/Adam", "dense/bias/Adam_1"};
    struct arena *arena = arena_new();
    struct model model;
    struct error err;
    const struct spec *spec = parse(arena, spec_example_find("mnist-cnn")->json);
    CHECK_OK(model_build(spec, images(&SHAPE(28, 28, 1), 10), &model, &err), &err);
    for (int i = 0; i < ARRAY_LEN(nodes); i++) {
        if (!graph_find(model.graph, nodes[i]))
            CHECK_STOP("no node %s", nodes[i]);
    }
    CHECK(!graph_find(model.graph, "eval/dropout/dropout/random_uniform"));
    for (int i = 0; i < ARRAY_LEN(variables); i++) {
        int v = 0;
        while (v < model.variables_count && strcmp(model.variables[v].name, variables[i]))
            v++;
        if (v == model.variables_count)
            CHECK_STOP("no variable %s", variables[i]);
    }
    /* 8 trainable, two slots each, and the step. */
    CHECK_INT(model.variables_count, 8 * 3 + 1);
    model_release(&model);
    arena_free(arena);
}

TEST(model_of_the_same_spec_is_the_same_graph)
{
    struct str a = {0}, b = {0}, c = {0};
    build_text(spec_example_find("mnist-cnn")->json, &a);
    build_text(spec_example_find("mnist-cnn")->json, &b);
    build_text("{\"example\": \"mnist-cnn\", \"seed\": 1}", &c);
    CHECK(a.size == b.size && !memcmp(a.data, b.data, a.size));
    CHECK(a.size != c.size || memcmp(a.data, c.data, a.size));
    str_release(&a);
    str_release(&b);
    str_release(&c);
}

TEST(model_without_weights_is_refused)
{
    struct arena *arena = arena_new();
    struct model model;
    struct error err;
    const struct spec *spec = parse(arena, SPEC("{\"layer\": \"Flatten\"}"));
    CHECK_FAILS(model_build(spec, images(&SHAPE(28, 28, 1), 10), &model, &err), &err, INVALID);
    CHECK_TEXT(err.pointer, "/model/layers");
    arena_free(arena);
}

/* A short spec may not grow without bound: every step of a recurrent layer is nodes. */
TEST(model_of_too_many_nodes_is_refused)
{
    struct arena *arena = arena_new();
    struct str text = {0};
    struct model_summary summary;
    struct error err;
    str_add(&text,
            "{\"model\": {\"layers\": [{\"layer\": \"Reshape\", \"target_shape\": [784, 1]}");
    for (int i = 0; i < 60; i++)
        str_add(&text, ", {\"layer\": \"LSTM\", \"units\": 1, \"activation\": \"relu\", "
                       "\"return_sequences\": true}");
    str_add(&text, "]}, \"data\": {\"dataset\": \"mnist\"}}");
    const struct spec *spec = parse(arena, str_text(&text));
    CHECK_FAILS(model_summary(spec, images(&SHAPE(28, 28, 1), 10), arena, &summary, &err), &err,
                EXHAUSTED);
    CHECK(strstr(err.text, "more than 200000 nodes"));
    str_release(&text);
    arena_free(arena);
}

/* A scale that began with zeros would let nothing through. */
TEST(model_scales_begin_with_ones)
{
    struct arena *arena = arena_new();
    struct model model;
    struct error err;
    const struct spec *spec = parse(
        arena, SPEC("{\"layer\": \"Flatten\"}, {\"layer\": \"RMSNormalization\"}," DENSE));
    CHECK_OK(model_build(spec, images(&SHAPE(28, 28, 1), 10), &model, &err), &err);
    const struct node *value =
        graph_find(model.graph, "rms_normalization/scale/Initializer/value");
    CHECK(value);
    CHECK(tensor_number(node_attr_tensor(value, "value"), 0) == 1);
    model_release(&model);
    arena_free(arena);
}

/* How many nodes of evaluation are of that op; of any op of our own: NULL. */
static int count_in_eval(const struct graph *graph, const char *op)
{
    int count = 0;
    for (int i = 0; i < graph_count(graph); i++) {
        const struct node *node = graph_node(graph, i);
        if (!strncmp(node->name, MODEL_EVAL, strlen(MODEL_EVAL)))
            count += op ? !strcmp(node->op->name, op) : node->op->name[0] == '_';
    }
    return count;
}

/* A sequence is one node of our own; TensorFlow reads what is exported. */
TEST(model_is_of_plain_ops_to_be_exported)
{
    static const char *const cases[][2] = {
        {SPEC("{\"layer\": \"GRU\", \"units\": 3}," DENSE), "_GRUSequence"},
        {SPEC("{\"layer\": \"SimpleRNN\", \"units\": 3}," DENSE), "_RNNSequence"}};
    for (int i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena *arena = arena_new();
        struct model model;
        struct error err;
        const struct spec *spec = parse(arena, cases[i][0]);
        CHECK_OK(model_build(spec, images(&SHAPE(5, 4), 10), &model, &err), &err);
        CHECK_INT(count_in_eval(model.graph, cases[i][1]), 1);
        model_release(&model);
        CHECK_OK(model_build_plain(spec, images(&SHAPE(5, 4), 10), &model, &err), &err);
        CHECK_INT(count_in_eval(model.graph, NULL), 0);
        CHECK(count_in_eval(model.graph, "MatMul") >= 5);
        model_release(&model);
        arena_free(arena);
    }
}
