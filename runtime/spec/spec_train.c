/* spec_train.c - the train section of a job spec. */

#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"
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

/* "accuracy" is the one that goes with the loss. */
static bool accuracy_parse(const struct spec_object *train, int index, const char *name,
                           const struct config *loss, struct spec_metric *out)
{
    const char *class = metric_accuracy(loss_of(loss->class)->targets);
    if (!class)
        return error_at(train->err, spec_read_pointer(train, "metrics", index), INVALID,
                        "\"%s\" is for classes, which the loss %s has not", name,
                        loss->class->name);
    out->name = "accuracy";
    out->config =
        config_default(config_find(&metric_family, class), &metric_family, train->arena);
    return true;
}

static bool metric_parse(const struct spec_object *train, int index, json_t *json,
                         const struct config *loss, struct spec_metric *out)
{
    static const char *const accuracy[] = {"accuracy", "acc", NULL};
    if (json_is_string(json) && spec_read_find(accuracy, json_string_value(json)) >= 0)
        return accuracy_parse(train, index, json_string_value(json), loss, out);
    char field[32], found[SPEC_FOUND_BYTES];
    snprintf(field, sizeof(field), "%d", index);
    if (!json_is_string(json) && !json_is_object(json))
        return error_at(train->err, spec_read_pointer(train, "metrics", index), INVALID,
                        "a metric is %s, allowed: its name",
                        spec_read_found(json, found, sizeof(found)));
    json_t *list = json_pack("{s:O}", field, json);
    struct spec_object object = {list, spec_read_pointer(train, "metrics", -1), train->arena,
                                 train->err};
    bool ok = config_read(&object, field, &metric_family, &out->config);
    json_decref(list);
    int thresholds = 0;
    if (ok && config_has(out->config, "thresholds") &&
        config_reals(out->config, "thresholds", &thresholds) && thresholds > 1)
        return error_at(train->err, spec_read_pointer(train, "metrics", index), INVALID,
                        "%d thresholds, allowed: one for each metric", thresholds);
    if (ok)
        out->name = config_snake(train->arena, out->config->class->name);
    return ok;
}

/* What a loss for classes is watched by when nothing is said. */
static void metrics_default(const struct spec_object *train, struct spec_train *out)
{
    struct spec_metric *metric = arena_array(train->arena, 1, sizeof(*metric));
    out->metrics = metric;
    out->metrics_count = 0;
    if (metric_accuracy(loss_of(out->loss->class)->targets) &&
        accuracy_parse(train, -1, "accuracy", out->loss, metric))
        out->metrics_count = 1;
}

static bool metrics_parse(const struct spec_object *train, struct spec_train *out)
{
    json_t *list = spec_read_value(train, "metrics");
    char found[SPEC_FOUND_BYTES];
    if (!list) {
        metrics_default(train, out);
        return true;
    }
    if (!json_is_array(list) || json_array_size(list) > SPEC_METRICS_MAX)
        return error_at(train->err, spec_read_pointer(train, "metrics", -1), INVALID,
                        "metrics is %s, allowed: a list of names, at most %d",
                        spec_read_found(list, found, sizeof(found)), SPEC_METRICS_MAX);
    struct spec_metric *metrics =
        arena_array(train->arena, json_array_size(list) + 1, sizeof(*metrics));
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!metric_parse(train, (int)i, json_array_get(list, i), out->loss, &metrics[i]))
            return false;
        for (size_t before = 0; before < i; before++) {
            if (!strcmp(metrics[before].name, metrics[i].name))
                return error_at(train->err, spec_read_pointer(train, "metrics", (int)i),
                                INVALID, "the metric \"%s\" is there already", metrics[i].name);
        }
    }
    out->metrics = metrics;
    out->metrics_count = (int)json_array_size(list);
    return true;
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

bool spec_parse_train(const struct spec_object *train, struct spec *spec)
{
    static const char *const allowed[] = {
        "loss",      "optimizer",      "metrics", "steps",    "epochs",         "eval_every",
        "precision", "check_numerics", "clip",    "schedule", "moving_average", "init",
        NULL};
    struct spec_train *out = &spec->train;
    *out = (struct spec_train){0};
    if (train->json && !spec_read_only(train, allowed))
        return false;
    static const char *const precisions[] = {"float32", "bfloat16", "float16", NULL};
    int precision = 0;
    if (!spec_read_choice(train, "precision", precisions, &precision) ||
        (precision &&
         !spec_read_not_yet(train, "precision", NULL, "this version computes in float32 only")))
        return false;
    return loss_parse(train, out) && spec_parse_optimizer(train, out) &&
           metrics_parse(train, out) && spec_parse_init(train, out) &&
           length_parse(train, out) &&
           spec_read_integer(train, "eval_every", 0, SPEC_STEPS_MAX, &out->eval_every) &&
           spec_read_bool(train, "check_numerics", &out->check_numerics);
}
