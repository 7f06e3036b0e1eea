/* spec_end.c - what of a job is kept, and what ends it: checkpoint, stop. */

#include "base/arena.h"
#include "base/limits.h"
#include "runtime/model/metric.h"
#include "runtime/spec/spec_internal.h"

#define END_COUNT_MAX INT64_C(1000000000000)
#define END_SECONDS_MAX (INT64_C(10) * 366 * 24 * 3600)
#define END_KEEP_MAX 10000

/* --- metrics that are watched --- */

/*
 * The series in `field`: "val_loss", "val_" and the name of a metric of the job, with
 * `of_steps` also those of training steps, "loss".
 */
static bool watched_parse(const struct spec_object *object, const char *field,
                          const struct spec_train *train, bool of_steps, const char **out)
{
    int count = train->metrics_count + 1, index = 0;
    const char **names = arena_array(object->arena, 2 * (size_t)count + 1, sizeof(*names));
    for (int i = 0; i < count; i++) {
        const char *name = i ? train->metrics[i - 1].name : "loss";
        names[i] = arena_printf(object->arena, "val_%s", name);
        names[count + i] = of_steps ? name : NULL;
    }
    if (!spec_read_choice(object, field, names, &index))
        return false;
    *out = names[index];
    return true;
}

/* Whether more of it is better, which the metric's class tells. */
static bool more_is_better(const struct spec_train *train, const char *watched)
{
    static const char *const less[] = {"Error", "Crossentropy", "Divergence", "Poisson",
                                       "Hinge", "False",        "LogCosh",    NULL};
    for (int i = 0; i < train->metrics_count; i++) {
        if (strcmp(train->metrics[i].name, watched + strlen("val_")))
            continue;
        for (int n = 0; less[n]; n++) {
            if (strstr(train->metrics[i].config->class->name, less[n]))
                return false;
        }
        return true;
    }
    return false; /* the loss */
}

static bool mode_parse(const struct spec_object *object, const struct spec_train *train,
                       const char *metric, bool *more)
{
    static const char *const modes[] = {"auto", "min", "max", NULL};
    int mode = 0;
    if (!spec_read_choice(object, "mode", modes, &mode))
        return false;
    *more = mode ? mode == 2 : more_is_better(train, metric);
    return true;
}

/* What is decided by evaluations needs more than the one at the end. */
static bool evaluations_check(const struct spec_object *object, const struct spec_train *train,
                              const char *what)
{
    return train->eval_every ||
           error_at(object->err, object->pointer, INVALID,
                    "%s looks at evaluations, of which there is only the one at the end: "
                    "/train/eval_every is 0, allowed: at least 1 step",
                    what);
}

/* --- checkpoint --- */

static bool best_parse(const struct spec_object *checkpoint, const struct spec_train *train,
                       struct spec_checkpoint *out)
{
    static const char *const allowed[] = {"count", "metric", "mode", NULL};
    struct spec_object best;
    json_t *json = spec_read_value(checkpoint, "keep_best");
    out->best_metric = "val_loss";
    if (!json)
        return true;
    if (json_is_integer(json))
        return spec_read_integer(checkpoint, "keep_best", 0, END_KEEP_MAX, &out->keep_best) &&
               (!out->keep_best || evaluations_check(checkpoint, train, "keep_best"));
    out->keep_best = 1;
    return spec_read_object(checkpoint, "keep_best", &best) && spec_read_only(&best, allowed) &&
           spec_read_integer(&best, "count", 1, END_KEEP_MAX, &out->keep_best) &&
           watched_parse(&best, "metric", train, false, &out->best_metric) &&
           mode_parse(&best, train, out->best_metric, &out->best_is_more) &&
           evaluations_check(&best, train, "keep_best");
}

bool spec_parse_checkpoint(const struct spec_object *whole, struct spec *spec)
{
    static const char *const allowed[] = {"every_steps", "every_seconds", "keep_latest",
                                          "keep_best", NULL};
    struct spec_object object;
    struct spec_checkpoint *out = &spec->checkpoint;
    *out = (struct spec_checkpoint){.every_seconds = 60, .keep_latest = 3};
    if (!spec_read_object(whole, "checkpoint", &object))
        return false;
    if (spec_read_value(&object, "every_steps"))
        out->every_seconds = 0;
    return (!object.json || spec_read_only(&object, allowed)) &&
           spec_read_integer(&object, "every_steps", 0, END_COUNT_MAX, &out->every_steps) &&
           spec_read_integer(&object, "every_seconds", 0, END_SECONDS_MAX,
                             &out->every_seconds) &&
           spec_read_integer(&object, "keep_latest", 1, END_KEEP_MAX, &out->keep_latest) &&
           best_parse(&object, &spec->train, out);
}

/* --- stop --- */

static bool target_parse(const struct spec_object *stop, const struct spec_train *train,
                         struct spec_target *out)
{
    static const char *const allowed[] = {"metric", "min", "max", NULL};
    struct spec_object object;
    if (!spec_read_object(stop, "target", &object) || !object.json)
        return spec_read_object(stop, "target", &object);
    if (!spec_read_only(&object, allowed) ||
        !spec_read_required(&object, "metric", "\"val_accuracy\" or \"val_loss\"") ||
        !watched_parse(&object, "metric", train, true, &out->metric) ||
        !spec_read_number(&object, "min", -1e30, 1e30, &out->min) ||
        !spec_read_number(&object, "max", -1e30, 1e30, &out->max))
        return false;
    out->has_min = spec_read_value(&object, "min");
    out->has_max = spec_read_value(&object, "max");
    if (out->has_min == out->has_max)
        return error_at(stop->err, object.pointer, INVALID,
                        "target has %s, allowed: one of min and max",
                        out->has_min ? "both min and max" : "neither min nor max");
    return true;
}

static bool early_parse(const struct spec_object *stop, const struct spec_train *train,
                        struct spec_early *out)
{
    static const char *const allowed[] = {"metric", "patience", "min_delta", "mode", NULL};
    struct spec_object object;
    if (!spec_read_object(stop, "early", &object) || !object.json)
        return spec_read_object(stop, "early", &object);
    out->metric = "val_loss";
    return spec_read_only(&object, allowed) &&
           watched_parse(&object, "metric", train, false, &out->metric) &&
           spec_read_required(&object, "patience",
                              "how many evaluations without improvement are borne") &&
           spec_read_integer(&object, "patience", 0, END_COUNT_MAX, &out->patience) &&
           spec_read_number(&object, "min_delta", 0, 1e30, &out->min_delta) &&
           mode_parse(&object, train, out->metric, &out->more) &&
           evaluations_check(&object, train, "early");
}

bool spec_parse_seconds(const struct spec_object *stop, struct spec *spec)
{
    return spec_read_integer(stop, "max_seconds", 0, END_SECONDS_MAX,
                             &spec->stop.max_seconds) &&
           spec_read_integer(stop, "stall_seconds", 0, END_SECONDS_MAX,
                             &spec->stop.stall_seconds);
}

bool spec_parse_stop(const struct spec_object *whole, struct spec *spec)
{
    static const char *const allowed[] = {"max_steps", "max_seconds", "stall_seconds",
                                          "target",    "early",       NULL};
    struct spec_object object;
    struct spec_stop *out = &spec->stop;
    return spec_read_object(whole, "stop", &object) &&
           (!object.json || spec_read_only(&object, allowed)) &&
           spec_read_integer(&object, "max_steps", 0, END_COUNT_MAX, &out->max_steps) &&
           spec_parse_seconds(&object, spec) &&
           target_parse(&object, &spec->train, &out->target) &&
           early_parse(&object, &spec->train, &out->early);
}
