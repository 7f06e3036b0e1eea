/* imported_test.c - graphs that TensorFlow wrote (imported.py): trained to its losses, and what
 * is refused of them. */

#include <math.h>

#include "base/arena.h"
#include "base/str.h"
#include "kernels/list.h"
#include "runtime/graph.h"
#include "runtime/io/base64.h"
#include "runtime/io/file.h"
#include "runtime/model/metric.h"
#include "runtime/model/model.h"
#include "runtime/session.h"
#include "runtime/spec/spec.h"
#include "runtime/tensor.h"
#include "tests/unit/test.h"

enum { BATCH = 8, STEPS = 6 };

static const double losses[STEPS] = {1.0989454, 1.1300781, 1.1959984,
                                     1.4327561, 1.6359837, 1.5140785};

static const struct model_feature images = {"images", F32, {.rank = 2, .dims = {2, 2}}};
static const struct model_data data = {.features = &images,
                                       .features_count = 1,
                                       .target = {"labels", I32, {.rank = 0}},
                                       .classes = 3};

/* The file in base64, to be freed with str_release(). */
static struct str graph_text(const char *name)
{
    struct str bytes = {0}, text = {0};
    struct error err;
    char path[100];
    snprintf(path, sizeof(path), "tests/train/imported_%s.meta", name);
    CHECK_OK(file_read(path, 1 << 20, &bytes, &err), &err);
    base64_encode(bytes.data, bytes.size, &text);
    str_release(&bytes);
    return text;
}

/* A spec whose graph has `parts` beside itself. */
static const struct spec *parse(struct arena *arena, const char *graph, const char *parts,
                                const char *train, struct error *err)
{
    struct str text = {0};
    str_printf(&text,
               "{\"model\": {\"graph\": {\"meta_graph\": \"%s\"%s}}, \"data\": {\"dataset\": "
               "\"x\", \"batch_size\": 8}, \"train\": {%s}}",
               graph, parts, train);
    const struct spec *spec = spec_parse(arena, str_text(&text), text.size, err);
    str_release(&text);
    return spec;
}

#define INPUTS_PART ", \"inputs\": {\"images\": \"x\", \"labels\": \"y_:0\"}"
#define PARTS                                                                                  \
    INPUTS_PART ", \"output\": \"probabilities\", \"metrics\": {\"accuracy\": \"accuracy:0\"}"

static void make_batch(int step, struct tensor feeds[2])
{
    struct error err;
    CHECK_OK(tensor_init(&feeds[0], F32, &SHAPE(BATCH, 2, 2), &err), &err);
    CHECK_OK(tensor_init(&feeds[1], I32, &SHAPE(BATCH), &err), &err);
    for (int i = 0; i < BATCH * 4; i++)
        tensor_f32_mut(&feeds[0])[i] = (float)((step * BATCH * 4 + i) * 37 % 64) / 32.0f - 1;
    for (int i = 0; i < BATCH; i++)
        tensor_set_number(&feeds[1], i, (step * BATCH + i) * 7 % 3);
}

static void check_losses(const struct model *model, bool no_optimise)
{
    struct error err;
    const struct session_options options = {.threads = 1, .no_optimise = no_optimise};
    struct session *session = session_new(&options, &err);
    CHECK_OK(session, &err);
    CHECK_OK(session_extend_graph(session, model->graph, &err), &err);
    const struct session_run init = {.targets = &model->init, .targets_count = 1};
    CHECK_OK(session_run(session, &init, NULL, &err), &err);
    const struct session_run run = {
        .feeds = (const char *[]){"trainyard/images", "trainyard/labels"},
        .feeds_count = 2,
        .fetches = (const char *[]){model->metrics[0].sums, model->metrics[1].sums},
        .fetches_count = 2,
        .targets = &model->train,
        .targets_count = 1};
    struct callable *call = session_prepare(session, &run, &err);
    CHECK_OK(call, &err);
    for (int step = 0; step < STEPS; step++) {
        struct tensor feeds[2], fetched[2];
        make_batch(step, feeds);
        CHECK_OK(session_call(session, call, feeds, fetched, NULL, &err), &err);
        double loss = tensor_number(&fetched[0], 0);
        if (!(fabs(loss - losses[step]) < 1e-6))
            CHECK_STOP("step %d: loss %.9g, TensorFlow has %.9g", step, loss, losses[step]);
        CHECK(fetched[1].count == 2 && tensor_number(&fetched[1], 1) == BATCH);
        double right = tensor_number(&fetched[1], 0);
        CHECK(right >= 0 && right <= BATCH && fabs(right - round(right)) < 1e-5);
        for (int i = 0; i < 2; i++) {
            tensor_release(&feeds[i]);
            tensor_release(&fetched[i]);
        }
    }
    session_free(session);
}

TEST(trains_as_tensorflow_does)
{
    static const char *const names[] = {"resource", "reference"};
    kernels_add(false);
    for (int i = 0; i < ARRAY_LEN(names); i++) {
        struct arena *arena = arena_new();
        struct error err;
        struct str graph = graph_text(names[i]);
        const struct spec *spec = parse(arena, str_text(&graph), PARTS, "", &err);
        CHECK_OK(spec, &err);
        struct model model;
        CHECK_OK(model_build(spec, &data, &model, &err), &err);
        CHECK(model.variables_count == 5); /* two, their momentum, the step */
        CHECK(model.summary.parameters == 15);
        CHECK(!strcmp(model.output, "probabilities:0"));
        CHECK(shape_equal(&model.output_shape, &SHAPE(-1, 3)));
        CHECK(model.metrics_count == 2 && !strcmp(model.metrics[1].name, "accuracy"));
        check_losses(&model, false);
        check_losses(&model, true);
        model_release(&model);
        struct model_summary summary;
        CHECK_OK(model_summary(spec, &data, arena, &summary, &err), &err);
        CHECK(summary.parameters == 15 && summary.layers_count == 0);
        str_release(&graph);
        arena_free(arena);
    }
}

/* What is written out reads back as the same. */
TEST(a_spec_with_a_graph_as_json)
{
    struct arena *arena = arena_new();
    struct error err;
    struct str once = {0}, twice = {0};
    const struct spec *spec =
        parse(arena, "AAAA", PARTS ", \"loss\": \"a\", \"train\": \"b\", \"init\": \"c\"",
              "\"epochs\": 3", &err);
    CHECK_OK(spec, &err);
    CHECK(spec->layers_count == 0 && spec->train.metrics_count == 1 && spec->train.epochs == 3);
    spec_to_json(spec, &once);
    spec = spec_parse(arena, str_text(&once), once.size, &err);
    CHECK_OK(spec, &err);
    CHECK(!strcmp(spec->graph.loss, "a") && !strcmp(spec->graph.train, "b"));
    CHECK(!strcmp(spec->graph.init, "c") && !strcmp(spec->graph.output, "probabilities"));
    CHECK(spec->graph.inputs_count == 2 && !strcmp(spec->graph.inputs[1].tensor, "y_:0"));
    spec_to_json(spec, &twice);
    CHECK(!strcmp(str_text(&once), str_text(&twice)));
    static const char alone[] =
        "{\"model\": {\"graph\": \"AAAA\"}, \"data\": {\"dataset\": \"x\"}}";
    spec = spec_parse(arena, alone, strlen(alone), &err);
    CHECK_OK(spec, &err);
    CHECK(!strcmp(spec->graph.meta_graph, "AAAA"));
    str_release(&once);
    str_release(&twice);
    arena_free(arena);
}

static void check_refused(const char *graph, const char *parts, const char *train,
                          const struct model_data *of, const char *pointer, const char *text)
{
    struct arena *arena = arena_new();
    struct error err;
    struct model model;
    const struct spec *spec = parse(arena, graph, parts, train, &err);
    if (spec && model_build(spec, of, &model, &err))
        CHECK_STOP("%s %s: was taken", parts, train);
    if (strcmp(err.pointer, pointer) != 0 || !strstr(err.text, text))
        CHECK_STOP("%s %s: %s: %s", parts, train, err.pointer, err.text);
    arena_free(arena);
}

TEST(refusals)
{
    static const struct {
        const char *parts, *train, *pointer, *text;
    } cases[] = {
        {"", "", "/model/graph/inputs",
         "no placeholder takes \"images\" of the data: \"inputs\" says which, {\"images\": "
         "NAME}; there are: \"x\", \"y_\", \"keep\""},
        {", \"inputs\": {\"images\": \"x\"}", "", "/model/graph/inputs",
         "nothing of the data is fed to the placeholder \"y_\", which training needs"},
        {", \"inputs\": {\"images\": \"x\", \"labels\": \"MatMul\"}", "", "/model/graph/inputs",
         "no placeholder takes \"labels\""},
        {", \"inputs\": {\"pictures\": \"x\"}", "", "/model/graph/inputs",
         "the data has no \"pictures\""},
        {", \"inputs\": {\"images\": 7}", "", "/model/graph/inputs/images", "7"},
        {", \"inputs\": {\"images\": \"y_\", \"labels\": \"x\"}", "", "/model/graph/inputs",
         "the placeholder \"y_\" takes [?], \"images\" of the data is [?,2,2]"},
        {INPUTS_PART ", \"loss\": \"nope\"", "", "/model/graph/loss", "nope"},
        {INPUTS_PART ", \"loss\": \"probabilities\"", "", "/model/graph/loss",
         "\"probabilities\" is [?,3], wanted: one number"},
        {INPUTS_PART ", \"loss\": \"y_\"", "", "/model/graph/loss", "holds no floats"},
        {INPUTS_PART ", \"train\": \"nope\"", "", "/model/graph/train", "no node \"nope\""},
        {INPUTS_PART ", \"init\": \"nope:0\"", "", "/model/graph/init", "no node \"nope\""},
        {INPUTS_PART ", \"output\": \"nope\"", "", "/model/graph/output", "nope"},
        {INPUTS_PART ", \"output\": \"Momentum\"", "", "/model/graph/output", "Momentum"},
        {INPUTS_PART ", \"metrics\": {\"loss\": \"accuracy\"}", "", "/model/graph/metrics",
         "a metric is named \"loss\""},
        {INPUTS_PART ", \"metrics\": {\"a\": \"x\"}", "", "/model/graph/metrics",
         "wanted: one number"},
        {INPUTS_PART ", \"inputts\": {}", "", "/model/graph/inputts", "inputs"},
        {INPUTS_PART, "\"optimizer\": \"SGD\"", "/train/optimizer",
         "optimizer belongs to a model of layers"},
        {INPUTS_PART, "\"loss\": \"MeanSquaredError\"", "/train/loss", "loss belongs to"},
    };
    struct str graph = graph_text("resource");
    for (int i = 0; i < ARRAY_LEN(cases); i++)
        check_refused(str_text(&graph), cases[i].parts, cases[i].train, &data, cases[i].pointer,
                      cases[i].text);
    const struct model_feature words = {"images", STRING, {.rank = 2, .dims = {2, 2}}};
    struct model_data other = data;
    other.features = &words;
    check_refused(str_text(&graph), INPUTS_PART, "", &other, "/model/graph/inputs",
                  "the placeholder \"x\" takes float, \"images\" of the data is string");
    str_release(&graph);
    check_refused("%%%%", "", "", &data, "/model/graph/meta_graph", "is not base64");
    check_refused("AAAA", "", "", &data, "/model/graph/meta_graph", "the MetaGraphDef: ");
    check_refused("", "", "", &data, "/model/graph/meta_graph", "it has no graph");
}

/* Bytes that are cut off or changed are refused or another graph, never a crash. */
TEST(damaged_graphs)
{
    struct str graph = graph_text("resource"), bytes = {0};
    CHECK(base64_decode(str_text(&graph), &bytes));
    for (size_t i = 0; i < bytes.size; i += 211) {
        struct arena *arena = arena_new();
        struct error err;
        struct model model;
        struct str text = {0};
        char before = bytes.data[i];
        bytes.data[i] = (char)(before ^ (char)(1 + i % 255));
        base64_encode(bytes.data, i % 2 ? i : bytes.size, &text);
        const struct spec *spec = parse(arena, str_text(&text), PARTS, "", &err);
        CHECK_OK(spec, &err);
        if (model_build(spec, &data, &model, &err))
            model_release(&model);
        bytes.data[i] = before;
        str_release(&text);
        arena_free(arena);
    }
    str_release(&bytes);
    str_release(&graph);
}
