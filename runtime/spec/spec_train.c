/* spec_train.c - the train section of a job spec. */

#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/dtype.h"
#include "runtime/model/loss.h"
#include "runtime/model/metric.h"
#include "runtime/spec/spec_internal.h"

#define SPEC_STEPS_MAX INT64_C(1000000000000)
#define SPEC_EPOCHS_MAX 1000000

/* --- loss and metrics --- */

static bool loss_parse(const struct spec_object *train, struct spec_train *out)
{
    if (!config_read(train, "loss", &loss_family, &out->loss))
        return false;
    if (!out->loss)
        out->loss = config_default(config_find(&loss_family, "SparseCategoricalCrossentropy"),
                                   &loss_family, train->arena);
    return true;
}

/* A list of metrics: "metrics", or "weighted_metrics". */
struct metric_list {
    const struct spec_object *train;
    const char *field;
    const struct config *loss;
    bool weighted;
};

static bool refuse_metric(const struct metric_list *list, int index, const char *text)
{
    return error_at(list->train->err, spec_read_pointer(list->train, list->field, index),
                    INVALID, "%s", text);
}

/* "accuracy" is the one that goes with the loss. */
static bool accuracy_parse(const struct metric_list *list, int index, const char *name,
                           struct spec_metric *out)
{
    const char *class = metric_accuracy(loss_of(list->loss->class)->targets);
    char text[200];
    snprintf(text, sizeof(text), "\"%s\" is for classes, which the loss %s has not", name,
             list->loss->class->name);
    if (!class)
        return refuse_metric(list, index, text);
    out->name = "accuracy";
    out->config =
        config_default(config_find(&metric_family, class), &metric_family, list->train->arena);
    return true;
}

static bool metric_parse(const struct metric_list *list, int index, json_t *json,
                         struct spec_metric *out)
{
    static const char *const accuracy[] = {"accuracy", "acc", NULL};
    const struct spec_object *train = list->train;
    if (json_is_string(json) && spec_read_find(accuracy, json_string_value(json)) >= 0)
        return accuracy_parse(list, index, json_string_value(json), out);
    char field[32], found[SPEC_FOUND_BYTES];
    snprintf(field, sizeof(field), "%d", index);
    if (!json_is_string(json) && !json_is_object(json))
        return error_at(train->err, spec_read_pointer(train, list->field, index), INVALID,
                        "a metric is %s, allowed: its name",
                        spec_read_found(json, found, sizeof(found)));
    json_t *one = json_pack("{s:O}", field, json);
    struct spec_object object = {one, spec_read_pointer(train, list->field, -1), train->arena,
                                 train->err};
    bool ok = config_read(&object, field, &metric_family, &out->config);
    json_decref(one);
    int thresholds = 0;
    if (ok && config_has(out->config, "thresholds") &&
        config_reals(out->config, "thresholds", &thresholds) && thresholds > 1)
        return error_at(train->err, spec_read_pointer(train, list->field, index), INVALID,
                        "%d thresholds, allowed: one for each metric", thresholds);
    if (ok)
        out->name = config_snake(train->arena, out->config->class->name);
    return ok;
}

/* What a loss for classes is watched by when nothing is said. */
static void metrics_default(const struct metric_list *list, struct spec_train *out)
{
    struct spec_metric *metric = arena_array(list->train->arena, 1, sizeof(*metric));
    if (metric_accuracy(loss_of(list->loss->class)->targets) &&
        accuracy_parse(list, -1, "accuracy", metric))
        out->metrics_count = 1;
    out->metrics = metric;
}

static bool find_name(const struct spec_metric *metrics, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(metrics[i].name, name))
            return true;
    }
    return false;
}

/* Adds the metrics of a list to those that there are; as Keras names them, a weighted one whose
 * name is taken is "weighted_accuracy". */
static bool list_parse(const struct metric_list *list, struct spec_train *out)
{
    const struct spec_object *train = list->train;
    json_t *json = spec_read_value(train, list->field);
    char found[SPEC_FOUND_BYTES];
    if (!json)
        return true;
    size_t count = json_array_size(json), before = (size_t)out->metrics_count;
    if (!json_is_array(json) || before + count > SPEC_METRICS_MAX)
        return error_at(train->err, spec_read_pointer(train, list->field, -1), INVALID,
                        "%s is %s, allowed: a list of names, at most %d", list->field,
                        spec_read_found(json, found, sizeof(found)), SPEC_METRICS_MAX);
    struct spec_metric *metrics =
        arena_array(train->arena, before + count + 1, sizeof(*metrics));
    if (before)
        memcpy(metrics, out->metrics, before * sizeof(*metrics));
    for (size_t i = 0; i < count; i++) {
        struct spec_metric *metric = &metrics[before + i];
        if (!metric_parse(list, (int)i, json_array_get(json, i), metric))
            return false;
        metric->weighted = list->weighted;
        if (list->weighted && find_name(metrics, before + i, metric->name))
            metric->name = arena_printf(train->arena, SPEC_WEIGHTED "%s", metric->name);
        if (find_name(metrics, before + i, metric->name))
            return error_at(train->err, spec_read_pointer(train, list->field, (int)i), INVALID,
                            "the metric \"%s\" is there already", metric->name);
    }
    out->metrics = metrics;
    out->metrics_count = (int)(before + count);
    return true;
}

static bool metrics_parse(const struct spec_object *train, struct spec_train *out)
{
    const struct metric_list plain = {train, "metrics", out->loss, false};
    const struct metric_list weighted = {train, "weighted_metrics", out->loss, true};
    if (!spec_read_value(train, "metrics"))
        metrics_default(&plain, out);
    return list_parse(&plain, out) && list_parse(&weighted, out);
}

/* --- the section --- */

static bool length_parse(const struct spec_object *train, struct spec_train *out)
{
    if (!spec_read_integer(train, "steps", 1, SPEC_STEPS_MAX, &out->steps) ||
        !spec_read_integer(train, "epochs", 1, SPEC_EPOCHS_MAX, &out->epochs))
        return false;
    if (out->steps && out->epochs)
        return error_at(train->err, spec_read_pointer(train, "epochs", -1), INVALID,
                        "epochs is %lld and steps is %lld, allowed: one of the two",
                        (long long)out->epochs, (long long)out->steps);
    if (!out->steps && !out->epochs)
        out->epochs = 1;
    return true;
}

static bool precision_parse(const struct spec_object *train, int *out)
{
    static const char *const names[] = {"float32", "bfloat16", "float16", NULL};
    static const int types[] = {F32, BF16, F16};
    int index = *out == BF16; /* what a model of Keras says */
    if (!spec_read_choice(train, "precision", names, &index))
        return false;
    *out = types[index];
    return *out != F16 || spec_read_not_yet(train, "precision", NULL,
                                            "this version multiplies in float32 or bfloat16");
}

/* What a graph of another program says itself. */
static bool refuse_learning(const struct spec_object *train)
{
    static const char *const fields[] = {"loss",          "optimizer", "metrics",
                                         "clip",          "schedule",  "weighted_metrics",
                                         "moving_average"};
    for (int i = 0; i < ARRAY_LEN(fields); i++) {
        if (spec_read_value(train, fields[i]))
            return error_at(train->err, spec_read_pointer(train, fields[i], -1), INVALID,
                            "%s belongs to a model of layers; what a \"graph\" trains by is in "
                            "it, and \"model\" names it",
                            fields[i]);
    }
    return true;
}

bool spec_parse_train(const struct spec_object *train, struct spec *spec)
{
    static const char *const allowed[] = {
        "loss",           "optimizer", "metrics",          "steps", "epochs",
        "eval_every",     "precision", "check_numerics",   "clip",  "schedule",
        "moving_average", "init",      "weighted_metrics", NULL};
    struct spec_train *out = &spec->train;
    bool graph = spec->graph.meta_graph;
    if (train->json && !spec_read_only(train, allowed))
        return false;
    return precision_parse(train, &out->precision) &&
           (graph ? refuse_learning(train)
                  : loss_parse(train, out) && spec_parse_optimizer(train, out) &&
                        metrics_parse(train, out)) &&
           spec_parse_init(train, out) && length_parse(train, out) &&
           spec_read_integer(train, "eval_every", 0, SPEC_STEPS_MAX, &out->eval_every) &&
           spec_read_bool(train, "check_numerics", &out->check_numerics);
}
