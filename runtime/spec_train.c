/* spec_train.c - the data and train sections of a job spec. */

#include "base/arena.h"
#include "base/limits.h"
#include "runtime/spec_internal.h"

#define SPEC_STEPS_MAX INT64_C(1000000000000)
#define SPEC_EPOCHS_MAX 1000000
#define SPEC_BATCH_MAX 1000000
#define SPEC_SHUFFLE_MAX 1000000000
#define SPEC_VALIDATION_MAX 1000000000

bool spec_parse_data(const struct spec_object *data, struct spec *spec)
{
    static const char *const allowed[] = {"dataset", "batch_size", "shuffle", "validation",
                                          NULL};
    struct spec_data *out = &spec->data;
    out->batch_size = 32;
    out->shuffle = -1;
    if (!spec_read_only(data, allowed) ||
        !spec_read_required(data, "dataset", "the name of a dataset, \"mnist\" for one") ||
        !spec_read_name(data, "dataset", &out->dataset) ||
        !spec_read_integer(data, "batch_size", 1, SPEC_BATCH_MAX, &out->batch_size) ||
        !spec_read_integer(data, "validation", 0, SPEC_VALIDATION_MAX, &out->validation))
        return false;
    json_t *shuffle = spec_read_value(data, "shuffle");
    if (json_is_boolean(shuffle)) {
        out->shuffle = json_is_true(shuffle) ? -1 : 0;
        return true;
    }
    char found[SPEC_FOUND_BYTES];
    if (shuffle && !json_is_integer(shuffle))
        return error_at(data->err, spec_read_pointer(data, "shuffle", -1), INVALID,
                        "shuffle is %s, allowed: true, false, or the size of the buffer",
                        spec_read_found(shuffle, found, sizeof(found)));
    return spec_read_integer(data, "shuffle", 0, SPEC_SHUFFLE_MAX, &out->shuffle);
}

/* --- loss and metrics --- */

static bool loss_parse(const struct spec_object *train)
{
    static const char *const losses[] = {"sparse_categorical_crossentropy", NULL};
    static const char *const later[] = {"categorical_crossentropy",
                                        "binary_crossentropy",
                                        "mean_squared_error",
                                        "mse",
                                        "mean_absolute_error",
                                        "mae",
                                        "huber",
                                        "kl_divergence",
                                        "hinge",
                                        "poisson",
                                        "cosine_similarity",
                                        "log_cosh",
                                        NULL};
    json_t *json = spec_read_value(train, "loss");
    if (json_is_string(json) && spec_read_find(later, json_string_value(json)) >= 0)
        return error_at(train->err, spec_read_pointer(train, "loss", -1), UNIMPLEMENTED,
                        "this version has no loss \"%s\" yet", json_string_value(json));
    int loss;
    return spec_read_choice(train, "loss", losses, &loss);
}

static bool metrics_parse(const struct spec_object *train, struct spec_train *out)
{
    static const char *const metrics[] = {"accuracy", "sparse_categorical_accuracy", "acc",
                                          NULL};
    static const char *const later[] = {"precision",
                                        "recall",
                                        "auc",
                                        "top_k_categorical_accuracy",
                                        "sparse_top_k_categorical_accuracy",
                                        "mean_squared_error",
                                        "mse",
                                        "mean_absolute_error",
                                        "mae",
                                        NULL};
    json_t *list = spec_read_value(train, "metrics");
    if (!list)
        return true;
    char found[SPEC_FOUND_BYTES];
    const char *pointer = spec_read_pointer(train, "metrics", -1);
    if (!json_is_array(list))
        return error_at(train->err, pointer, INVALID, "metrics is %s, allowed: a list of names",
                        spec_read_found(list, found, sizeof(found)));
    out->accuracy = false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *item = json_array_get(list, i);
        pointer = spec_read_pointer(train, "metrics", (int)i);
        if (!json_is_string(item))
            return error_at(train->err, pointer, INVALID, "a metric is %s, allowed: its name",
                            spec_read_found(item, found, sizeof(found)));
        const char *name = json_string_value(item);
        if (spec_read_find(later, name) >= 0)
            return error_at(train->err, pointer, UNIMPLEMENTED,
                            "this version has no metric \"%s\" yet", name);
        if (spec_read_find(metrics, name) < 0)
            return spec_read_suggest(train->err, pointer, "unknown metric", name, metrics);
        out->accuracy = true;
    }
    return true;
}

/* --- optimizers --- */

/* The order is that of enum spec_optimizer_kind. */
static const char *const optimizer_names[] = {"SGD", "Adam", NULL};

const char *spec_optimizer_name(enum spec_optimizer_kind kind)
{
    return optimizer_names[kind];
}

#define OPTIMIZER_FIELDS                                                                       \
    "name", "learning_rate", "weight_decay", "clipnorm", "clipvalue", "global_clipnorm",       \
        "use_ema", "loss_scale_factor", "gradient_accumulation_steps"

/* What Keras's optimizers have and ours do not have yet. */
static bool optimizer_later(const struct spec_object *object)
{
    static const char *const later[] = {"weight_decay",      "clipnorm",
                                        "clipvalue",         "global_clipnorm",
                                        "loss_scale_factor", "gradient_accumulation_steps"};
    for (int i = 0; i < ARRAY_LEN(later); i++) {
        if (!spec_read_not_yet(object, later[i], NULL, "this version has none yet"))
            return false;
    }
    return spec_read_not_yet(object, "use_ema", json_false(), "this version has none yet") &&
           spec_read_not_yet(object, "amsgrad", json_false(), "this version has none yet");
}

static bool sgd_parse(const struct spec_object *object, struct spec_optimizer *out)
{
    static const char *const allowed[] = {OPTIMIZER_FIELDS, "momentum", "nesterov", NULL};
    out->learning_rate = 0.01;
    return (!object->json || spec_read_only(object, allowed)) &&
           spec_read_number(object, "momentum", 0, 1, &out->momentum) &&
           spec_read_bool(object, "nesterov", &out->nesterov);
}

static bool adam_parse(const struct spec_object *object, struct spec_optimizer *out)
{
    static const char *const allowed[] = {OPTIMIZER_FIELDS, "beta_1",  "beta_2",
                                          "epsilon",        "amsgrad", NULL};
    out->learning_rate = 0.001;
    out->beta_1 = 0.9;
    out->beta_2 = 0.999;
    out->epsilon = 1e-7;
    return (!object->json || spec_read_only(object, allowed)) &&
           spec_read_number(object, "beta_1", 0, 0.9999999, &out->beta_1) &&
           spec_read_number(object, "beta_2", 0, 0.9999999, &out->beta_2) &&
           spec_read_number(object, "epsilon", 0, 1, &out->epsilon);
}

/* Reads "Adam" or {"name": "Adam", arguments}; Adam when nothing is said. */
static bool optimizer_parse(const struct spec_object *train, struct spec_optimizer *out)
{
    static const char *const later[] = {"RMSprop", "AdamW", "Adagrad", "Adadelta",  "Adamax",
                                        "Nadam",   "Ftrl",  "Lion",    "Adafactor", NULL};
    json_t *json = spec_read_value(train, "optimizer");
    struct spec_object object = {NULL, spec_read_pointer(train, "optimizer", -1), train->arena,
                                 train->err};
    const struct spec_object *named = train;
    const char *field = "optimizer";
    if (!json_is_string(json)) {
        if (!spec_read_object(train, "optimizer", &object))
            return false;
        named = &object;
        field = "name";
        json = spec_read_value(&object, "name");
    }
    int kind = OPTIMIZER_ADAM;
    if (object.json && !spec_read_required(&object, "name", "\"Adam\" or \"SGD\""))
        return false;
    if (json_is_string(json) && spec_read_find(later, json_string_value(json)) >= 0)
        return error_at(train->err, spec_read_pointer(named, field, -1), UNIMPLEMENTED,
                        "this version has no optimizer \"%s\" yet", json_string_value(json));
    if (json && !spec_read_choice(named, field, optimizer_names, &kind))
        return false;
    *out = (struct spec_optimizer){.kind = (enum spec_optimizer_kind)kind};
    return (kind == OPTIMIZER_SGD ? sgd_parse : adam_parse)(&object, out) &&
           spec_read_number(&object, "learning_rate", 0, 1e6, &out->learning_rate) &&
           optimizer_later(&object);
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
    static const char *const later[] = {"clip", "schedule", "moving_average", "init"};
    struct spec_train *out = &spec->train;
    *out = (struct spec_train){.accuracy = true};
    if (train->json && !spec_read_only(train, allowed))
        return false;
    for (int i = 0; i < ARRAY_LEN(later); i++) {
        if (!spec_read_not_yet(train, later[i], NULL, "this version has none yet"))
            return false;
    }
    static const char *const precisions[] = {"float32", "bfloat16", "float16", NULL};
    int precision = 0;
    if (!spec_read_choice(train, "precision", precisions, &precision) ||
        (precision &&
         !spec_read_not_yet(train, "precision", NULL, "this version computes in float32 only")))
        return false;
    return loss_parse(train) && optimizer_parse(train, &out->optimizer) &&
           metrics_parse(train, out) && length_parse(train, out) &&
           spec_read_integer(train, "eval_every", 0, SPEC_STEPS_MAX, &out->eval_every) &&
           spec_read_bool(train, "check_numerics", &out->check_numerics);
}
