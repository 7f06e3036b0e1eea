/* model.c - whole models of Keras: read from model.json, run, trained for five steps. */

#include "tests/interop/keras/model.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/graph.h"
#include "runtime/model/model.h"
#include "runtime/resource.h"
#include "runtime/session.h"
#include "runtime/spec/spec.h"
#include "runtime/train/keras.h"
#include "runtime/train/trained.h"
#include "runtime/train/weights.h"
#include "tests/interop/keras/value.h"

enum { INPUTS_MAX = 8 };

struct run {
    struct arena *arena;
    const json_t *wanted; /* expected.json */
    struct error *err;
    double relative, absolute;
    struct model_feature features[INPUTS_MAX];
    struct tensor values[INPUTS_MAX + 1]; /* inputs, then the target */
    const char *feeds[INPUTS_MAX + 1], *eval_feeds[INPUTS_MAX + 1];
    int inputs;
    struct model model;
    struct session *session;
};

/* {"class", "config"} as a spec has it. */
static json_t *as_spec(const json_t *recorded)
{
    json_t *json = json_copy(json_object_get(recorded, "config"));
    json_object_set(json, "name", json_object_get(recorded, "class"));
    return json;
}

static const struct spec *make_spec(struct run *r, json_t *model, int64_t batch)
{
    json_t *json =
        json_pack("{s:{s:O}, s:{s:s, s:I}, s:{s:o, s:o, s:[]}}", "model", "keras", model,
                  "data", "dataset", "x", "batch_size", (json_int_t)batch, "train", "loss",
                  as_spec(json_object_get(r->wanted, "loss")), "optimizer",
                  as_spec(json_object_get(r->wanted, "optimizer")), "metrics");
    char *text = json_dumps(json, 0);
    const struct spec *spec = spec_parse(r->arena, text, strlen(text), r->err);
    free(text);
    json_decref(json);
    return spec;
}

/* The name of input `index`: what input_layers says, one entry or a list of them. */
static const char *input_name(const json_t *model, int index)
{
    const json_t *inputs = json_object_get(json_object_get(model, "config"), "input_layers");
    if (json_is_array(json_array_get(inputs, 0)))
        inputs = json_array_get(inputs, (size_t)index);
    const char *name = json_string_value(json_array_get(inputs, 0));
    return name ? name : "input";
}

static struct shape of_one(const struct tensor *examples)
{
    struct shape shape = examples->shape;
    shape.rank--;
    memmove(shape.dims, shape.dims + 1, (size_t)shape.rank * sizeof(*shape.dims));
    return shape;
}

static bool read_values(struct run *r, const json_t *model)
{
    const json_t *inputs = json_object_get(r->wanted, "input");
    for (size_t i = 0; i < json_array_size(inputs) && i < INPUTS_MAX; i++) {
        struct tensor *value = &r->values[i];
        if (!value_read(json_array_get(inputs, i), value, r->err))
            return false;
        const char *name = input_name(model, (int)i);
        r->features[i] = (struct model_feature){name, value->dtype, of_one(value)};
        r->feeds[i] = name;
        r->eval_feeds[i] = arena_printf(r->arena, MODEL_EVAL "%s", name);
        r->inputs++;
    }
    r->feeds[r->inputs] = "target";
    return value_read(json_object_get(r->wanted, "y"), &r->values[r->inputs], r->err);
}

static bool build(struct run *r, const struct spec *spec)
{
    const struct tensor *target = &r->values[r->inputs];
    const struct model_data data = {.features = r->features,
                                    .features_count = r->inputs,
                                    .target = {"target", target->dtype, of_one(target)}};
    static const char *const init[] = {MODEL_INIT};
    if (!model_build(spec, &data, &r->model, r->err))
        return false;
    r->session = session_new(&(struct session_options){.threads = 1}, r->err);
    return r->session && session_extend_graph(r->session, r->model.graph, r->err) &&
           session_run(r->session, &(struct session_run){.targets = init, .targets_count = 1},
                       NULL, r->err);
}

/* --- weights --- */

static bool set_variable(struct run *r, const struct model_variable *face, struct tensor *value)
{
    struct variable *variable =
        resources_variable(session_resources(r->session), "", face->name,
                           (enum dtype)face->dtype, &value->shape, r->err);
    if (!variable) {
        tensor_release(value);
        return error_prefix(r->err, "%s: ", face->name);
    }
    tensor_release(&variable->value);
    variable->value = *value;
    resource_unref(&variable->resource);
    return true;
}

/* Those of a file of Keras's, all of which must be there. */
static bool load_weights(struct run *r, const struct spec *spec, const char *path)
{
    struct weights *weights = weights_open(path, r->err);
    int count;
    const struct weights_place *places =
        weights_places(spec, r->model.variables, r->model.variables_count, r->arena, &count);
    const struct weights_match *matches =
        weights ? weights_match(weights, places, count, r->arena) : NULL;
    bool ok = weights;
    for (int i = 0; ok && i < count; i++) {
        struct str text = {0};
        struct tensor value;
        if (!matches[i].fits)
            weights_tell(&matches[i], &text);
        ok = text.size ? fail(r->err, INVALID, "%s: %s", path, str_text(&text))
                       : weights_value(&matches[i], &value, r->err) &&
                             set_variable(r, places[i].variable, &value);
        str_release(&text);
    }
    weights_close(weights);
    return ok;
}

/* Those of expected.json: of a layer they come in the same order. */
/* "sequential/lstm/lstm_cell/kernel" is of "lstm", "stem/kernel" of "stem". */
static const char *layer_of_path(struct run *r, const char *path)
{
    const char *start = strchr(path, '/');
    size_t first = strcspn(path, "/") + 1;
    start = start ? start + 1 : path;
    for (int i = 0; i < r->model.variables_count; i++) {
        if (!strncmp(r->model.variables[i].name, path, first))
            start = path;
    }
    return arena_text_n(r->arena, start, strcspn(start, "/"));
}

static bool is_slot(const char *name)
{
    static const char *const ends[] = {"/Adam", "/Adam_1", "/Momentum", "/RMSprop", "average"};
    for (int i = 0; i < ARRAY_LEN(ends); i++) {
        size_t size = strlen(name), end = strlen(ends[i]);
        if (size > end && !strcmp(name + size - end, ends[i]))
            return true;
    }
    return false;
}

/* Variable number `index` of the layer. */
static const struct model_variable *variable_of(const struct run *r, const char *layer,
                                                int index)
{
    size_t size = strlen(layer);
    for (int i = 0; i < r->model.variables_count; i++) {
        const struct model_variable *face = &r->model.variables[i];
        if (!strncmp(face->name, layer, size) && face->name[size] == '/' &&
            !is_slot(face->name) && !index--)
            return face;
    }
    return NULL;
}

static bool set_weights(struct run *r)
{
    const json_t *weights = json_object_get(r->wanted, "weights");
    for (size_t i = 0; i < json_array_size(weights); i++) {
        const json_t *row = json_array_get(weights, i);
        const char *path = json_string_value(json_object_get(row, "path"));
        const char *layer = layer_of_path(r, path);
        int before = 0;
        struct tensor value;
        for (size_t k = 0; k < i; k++)
            before += !strcmp(layer_of_path(r, json_string_value(json_object_get(
                                                   json_array_get(weights, k), "path"))),
                              layer);
        const struct model_variable *face = variable_of(r, layer, before);
        if (!face)
            return fail(r->err, NOT_FOUND, "no variable for %s", path);
        if (!value_read(row, &value, r->err))
            return false;
        if (!set_variable(r, face, &value))
            return error_prefix(r->err, "for %s: ", path);
    }
    return true;
}

/* --- running --- */

static bool check_output(struct run *r, const char *when)
{
    const json_t *outputs = json_object_get(r->wanted, when);
    struct tensor got, want;
    if (!value_read(json_array_get(outputs, 0), &want, r->err))
        return false;
    bool ok = session_run(r->session,
                          &(struct session_run){.feeds = r->eval_feeds,
                                                .feed_values = r->values,
                                                .feeds_count = r->inputs,
                                                .fetches = &r->model.output,
                                                .fetches_count = 1},
                          &got, r->err);
    if (ok) {
        ok = value_check(when, &got, &want, r->relative, r->absolute, r->err);
        tensor_release(&got);
    }
    tensor_release(&want);
    return ok;
}

static bool train(struct run *r)
{
    static const char *const targets[] = {MODEL_TRAIN};
    static const char *const fetches[] = {MODEL_LOSS};
    const json_t *losses = json_object_get(r->wanted, "losses");
    for (size_t i = 0; i < json_array_size(losses); i++) {
        struct tensor got, want;
        if (!session_run(r->session,
                         &(struct session_run){.feeds = r->feeds,
                                               .feed_values = r->values,
                                               .feeds_count = r->inputs + 1,
                                               .fetches = fetches,
                                               .fetches_count = 1,
                                               .targets = targets,
                                               .targets_count = 1},
                         &got, r->err))
            return false;
        bool ok = tensor_init_scalar(&want, F32, json_number_value(json_array_get(losses, i)),
                                     r->err) &&
                  value_check(arena_printf(r->arena, "loss of step %zu", i + 1), &got, &want,
                              r->relative, r->absolute, r->err);
        tensor_release(&got);
        tensor_release(&want);
        if (!ok)
            return false;
    }
    return true;
}

/* --- saving --- */

static bool write_files(struct run *r, const struct spec *spec, const struct tensor *values,
                        const char *save)
{
    struct trained trained = {
        .spec = spec, .model = r->model, .values = (struct tensor *)values, .arena = r->arena};
    trained.dataset.feeds.data.features = r->features;
    trained.dataset.feeds.data.features_count = r->inputs;
    return keras_write_model(&trained, arena_printf(r->arena, "%s.keras", save), r->err) &&
           keras_write_weights(&trained, arena_printf(r->arena, "%s.weights.h5", save), r->err);
}

/* SAVE.keras and SAVE.weights.h5, with the variables as they are now. */
static bool save_model(struct run *r, const struct spec *spec, const char *save)
{
    int count = r->model.variables_count;
    struct tensor *values = arena_array(r->arena, (size_t)count, sizeof(*values));
    bool ok = true;
    for (int i = 0; ok && i < count; i++) {
        const struct model_variable *face = &r->model.variables[i];
        struct variable *variable =
            resources_variable(session_resources(r->session), "", face->name,
                               (enum dtype)face->dtype, &face->shape, r->err);
        ok = variable;
        if (!ok)
            break;
        tensor_share(&values[i], &variable->value);
        resource_unref(&variable->resource);
    }
    ok = ok && write_files(r, spec, values, save);
    for (int i = 0; i < count; i++)
        tensor_release(&values[i]);
    return ok;
}

bool model_run_recorded(json_t *model, const char *weights, const json_t *wanted,
                        const char *save, struct error *err)
{
    struct run r = {.arena = arena_new(),
                    .wanted = wanted,
                    .err = err,
                    .relative = json_number_value(json_object_get(wanted, "rtol")),
                    .absolute = json_number_value(json_object_get(wanted, "atol"))};
    bool ok = read_values(&r, model);
    const struct spec *spec = ok ? make_spec(&r, model, r.values[0].shape.dims[0]) : NULL;
    ok = spec && build(&r, spec) &&
         (weights ? load_weights(&r, spec, weights) : set_weights(&r)) &&
         check_output(&r, "output") && train(&r) && check_output(&r, "output_after") &&
         (!save || save_model(&r, spec, save));
    session_free(r.session);
    if (r.model.graph)
        model_release(&r.model);
    for (int i = 0; i <= r.inputs; i++)
        tensor_release(&r.values[i]);
    arena_free(r.arena);
    return ok;
}
