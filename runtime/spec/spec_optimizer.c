/*
 * spec_optimizer.c - the optimizer of a job spec, and the short forms of its arguments beside
 * it:
 *
 *   "clip": 1.0                       global_clipnorm
 *   "clip": {"norm" | "value" | "global_norm": 1.0}
 *   "schedule": {"name": ...}         learning_rate
 *   "moving_average": 0.999           use_ema, ema_momentum
 *   "moving_average": {"momentum": 0.999, "overwrite_every": 100}
 *
 * Each is checked where it stands and then put among the arguments; saying a thing twice is
 * refused.
 */

#include "runtime/model/optimizer.h"
#include "runtime/spec/spec_internal.h"

#define CLIP_MAX 1e30
#define OVERWRITE_MAX INT64_C(1000000000000000)

struct merging {
    const struct spec_object *train;
    json_t *optimizer; /* an object, once something is put into it */
};

/* Puts an argument into the optimizer; takes `value`. */
static bool put(struct merging *g, const char *field, const char *argument, json_t *value)
{
    json_t *there = json_object_get(g->optimizer, argument);
    if (there && !json_is_null(there)) {
        json_decref(value);
        return error_at(g->train->err, spec_read_pointer(g->train, field, -1), INVALID,
                        "\"%s\" is said here and by \"%s\" of the optimizer, allowed: one of "
                        "the two",
                        field, argument);
    }
    json_object_set_new(g->optimizer, argument, value);
    return true;
}

static bool put_number(struct merging *g, const struct spec_object *object, const char *field,
                       const char *short_form, const char *argument, double min, double max)
{
    double value = 0;
    if (!spec_read_value(object, field))
        return true;
    return spec_read_number(object, field, min, max, &value) &&
           put(g, short_form, argument, json_real(value));
}

static bool merge_clip(struct merging *g)
{
    static const char *const allowed[] = {"norm", "value", "global_norm", NULL};
    static const char *const arguments[] = {"clipnorm", "clipvalue", "global_clipnorm"};
    struct spec_object clip;
    if (json_is_number(spec_read_value(g->train, "clip")))
        return put_number(g, g->train, "clip", "clip", "global_clipnorm", 1e-30, CLIP_MAX);
    if (!spec_read_object(g->train, "clip", &clip) || !clip.json)
        return !spec_read_value(g->train, "clip");
    if (!spec_read_only(&clip, allowed))
        return false;
    if (json_object_size(clip.json) != 1)
        return error_at(g->train->err, clip.pointer, INVALID,
                        "clip has %zu fields, allowed: one of norm, value and global_norm",
                        json_object_size(clip.json));
    for (int i = 0; i < ARRAY_LEN(arguments); i++) {
        if (!put_number(g, &clip, allowed[i], "clip", arguments[i], 1e-30, CLIP_MAX))
            return false;
    }
    return true;
}

static bool merge_schedule(struct merging *g)
{
    const struct config *schedule;
    json_t *json = spec_read_value(g->train, "schedule");
    if (!json)
        return true;
    return config_read(g->train, "schedule", &schedule_family, &schedule) &&
           put(g, "schedule", "learning_rate", json_incref(json));
}

static bool merge_average(struct merging *g)
{
    static const char *const allowed[] = {"momentum", "overwrite_every", NULL};
    struct spec_object average;
    json_t *json = spec_read_value(g->train, "moving_average");
    int64_t every = 0;
    if (!json || json_is_false(json))
        return true;
    if (!put(g, "moving_average", "use_ema", json_true()))
        return false;
    if (json_is_true(json))
        return true;
    if (json_is_number(json))
        return put_number(g, g->train, "moving_average", "moving_average", "ema_momentum", 0,
                          1);
    if (!spec_read_object(g->train, "moving_average", &average) ||
        !spec_read_only(&average, allowed) ||
        !put_number(g, &average, "momentum", "moving_average", "ema_momentum", 0, 1) ||
        !spec_read_integer(&average, "overwrite_every", 1, OVERWRITE_MAX, &every))
        return false;
    return !every || put(g, "moving_average", "ema_overwrite_frequency", json_integer(every));
}

/* The optimizer as an object that arguments can be put into: a new reference. */
static json_t *as_object(json_t *optimizer)
{
    if (!optimizer)
        return json_pack("{s:s}", "name", "Adam");
    return json_is_string(optimizer) ? json_pack("{s:O}", "name", optimizer)
                                     : json_copy(optimizer);
}

/* Adam when nothing is said. */
static bool read_optimizer(const struct spec_object *train, struct spec_train *out)
{
    if (!config_read(train, "optimizer", &optimizer_family, &out->optimizer))
        return false;
    if (!out->optimizer)
        out->optimizer = config_default(config_find(&optimizer_family, "Adam"),
                                        &optimizer_family, train->arena);
    return true;
}

bool spec_parse_optimizer(const struct spec_object *train, struct spec_train *out)
{
    json_t *given = spec_read_value(train, "optimizer");
    bool more = spec_read_value(train, "clip") || spec_read_value(train, "schedule") ||
                spec_read_value(train, "moving_average");
    if (!more || (given && !json_is_string(given) && !json_is_object(given)))
        return read_optimizer(train, out);
    struct merging g = {train, as_object(given)};
    json_t *merged = NULL;
    bool ok = merge_clip(&g) && merge_schedule(&g) && merge_average(&g);
    if (ok) {
        merged = json_pack("{s:O}", "optimizer", g.optimizer);
        struct spec_object object = {merged, train->pointer, train->arena, train->err};
        ok = read_optimizer(&object, out);
    }
    json_decref(merged);
    json_decref(g.optimizer);
    return ok;
}
