/*
 * onnx_write.c - writes models as ONNX, with inputs and what our own session makes of them, for
 * ONNX Runtime to compare (onnx_models.py).
 *
 *   onnx-write CASES.jsonl FOLDER
 *
 * A case is {"name", "spec", "inputs": [{"name", "dtype", "shape", "below"}], "target":
 * {"dtype", "shape", "like"}, "probe", "weights": a file or nothing}; it becomes
 * FOLDER/NAME.onnx, NAME.in0.npy ... and NAME.out.npy.  Weights that no file gives are random.
 */

#include <jansson.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "kernels/list.h"
#include "runtime/graph.h"
#include "runtime/io/file.h"
#include "runtime/io/npy.h"
#include "runtime/model/model.h"
#include "runtime/onnx/onnx.h"
#include "runtime/resource.h"
#include "runtime/session.h"
#include "runtime/signature.h"
#include "runtime/spec/spec.h"
#include "runtime/train/weights.h"

enum { INPUTS_MAX = 8, BATCH = 3, BYTES_MAX = 1 << 26 };

struct run {
    const json_t *json;
    const char *name, *folder;
    struct arena *arena;
    const struct spec *spec;
    struct model_feature features[INPUTS_MAX];
    int inputs;
    struct model model;
    struct session *session;
    struct tensor *values; /* of the variables */
    struct error *err;
};

/* --- numbers that are the same in every run --- */

static double random_number(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) / (double)(UINT64_C(1) << 53);
}

static bool random_tensor(struct tensor *out, enum dtype dtype, const struct shape *shape,
                          double low, double high, uint64_t *state, struct error *err)
{
    if (!tensor_init(out, dtype, shape, err))
        return false;
    for (int64_t i = 0; i < out->count; i++) {
        double value = low + (high - low) * random_number(state);
        tensor_set_number(out, i, BIT(dtype) & DTYPES_FLOAT ? value : (double)(int64_t)value);
    }
    return true;
}

/* --- the model --- */

static struct model_feature feature_of(const json_t *json)
{
    const json_t *shape = json_object_get(json, "shape");
    struct model_feature out = {
        .name = json_string_value(json_object_get(json, "name")),
        .dtype = (int)dtype_find(json_string_value(json_object_get(json, "dtype"))),
        .shape = {.rank = (int)json_array_size(shape)}};
    for (int d = 0; d < out.shape.rank; d++)
        out.shape.dims[d] = json_integer_value(json_array_get(shape, (size_t)d));
    return out;
}

static const struct spec *read_spec(struct run *r, const char *key)
{
    char *text = json_dumps(json_object_get(r->json, key), 0);
    const struct spec *spec = spec_parse(r->arena, text, strlen(text), r->err);
    free(text);
    return spec;
}

/* The shape of the output of the model to be made: the probe is the same with two more layers.
 */
static bool find_shape(struct run *r, const struct model_data *data, struct shape *out)
{
    struct model_summary summary;
    bool like = json_is_true(json_object_get(json_object_get(r->json, "target"), "like"));
    const struct spec *probe = like ? read_spec(r, "probe") : NULL;
    if (!like)
        return true;
    if (!probe || !model_summary(probe, data, r->arena, &summary, r->err))
        return false;
    *out = summary.layers[summary.layers_count - 3].output;
    return true;
}

static bool build(struct run *r)
{
    const json_t *inputs = json_object_get(r->json, "inputs");
    static const char *const init[] = {MODEL_INIT};
    for (size_t i = 0; i < json_array_size(inputs) && i < INPUTS_MAX; i++)
        r->features[r->inputs++] = feature_of(json_array_get(inputs, i));
    struct model_data data = {.features = r->features,
                              .features_count = r->inputs,
                              .target = feature_of(json_object_get(r->json, "target"))};
    struct model_data probe = {
        .features = r->features, .features_count = r->inputs, .target = {"y", F32, SHAPE(1)}};
    if (!find_shape(r, &probe, &data.target.shape))
        return false;
    r->spec = read_spec(r, "spec");
    if (!r->spec || !model_build_plain(r->spec, &data, &r->model, r->err))
        return false;
    r->session = session_new(NULL, r->err);
    return r->session && session_extend_graph(r->session, r->model.graph, r->err) &&
           session_run(r->session, &(struct session_run){.targets = init, .targets_count = 1},
                       NULL, r->err);
}

/* --- weights --- */

static bool set_variable(struct run *r, int index, struct tensor *value)
{
    const struct model_variable *face = &r->model.variables[index];
    struct variable *variable =
        resources_variable(session_resources(r->session), "", face->name,
                           (enum dtype)face->dtype, &value->shape, r->err);
    if (!variable)
        return false;
    tensor_release(&variable->value);
    tensor_share(&variable->value, value);
    r->values[index] = *value;
    resource_unref(&variable->resource);
    return true;
}

static bool random_weights(struct run *r)
{
    uint64_t state = 7;
    for (int i = 0; i < r->model.variables_count; i++) {
        const struct model_variable *face = &r->model.variables[i];
        struct tensor value;
        bool positive = strstr(face->name, "variance") != NULL;
        if (!(BIT(face->dtype) & DTYPES_FLOAT))
            continue;
        if (!random_tensor(&value, (enum dtype)face->dtype, &face->shape, positive ? 0.5 : -0.4,
                           positive ? 1.5 : 0.6, &state, r->err) ||
            !set_variable(r, i, &value))
            return false;
    }
    return true;
}

static bool read_weights(struct run *r, const char *path)
{
    struct weights *file = weights_open(path, r->err);
    int count;
    const struct weights_place *places =
        weights_places(r->spec, r->model.variables, r->model.variables_count, r->arena, &count);
    const struct weights_match *matches =
        file ? weights_match(file, places, count, r->arena) : NULL;
    bool ok = file != NULL;
    for (int i = 0; ok && i < count; i++) {
        struct tensor value;
        int index = (int)(places[i].variable - r->model.variables);
        ok = matches[i].fits || fail(r->err, INVALID, "%s does not fit the model", path);
        if (ok)
            tensor_release(&r->values[index]);
        ok = ok && weights_value(&matches[i], &value, r->err) && set_variable(r, index, &value);
    }
    weights_close(file);
    return ok;
}

/* --- running and writing --- */

static char *path_of(struct run *r, const char *rest)
{
    return arena_printf(r->arena, "%s/%s.%s", r->folder, r->name, rest);
}

static bool write_values(struct run *r)
{
    struct tensor values[INPUTS_MAX + 1];
    const char *feeds[INPUTS_MAX];
    uint64_t state = 3;
    int made = 0;
    bool ok = true;
    for (; ok && made < r->inputs; made++) {
        const struct model_feature *f = &r->features[made];
        const json_t *below = json_object_get(
            json_array_get(json_object_get(r->json, "inputs"), (size_t)made), "below");
        struct shape shape = {.rank = f->shape.rank + 1, .dims = {BATCH}};
        memcpy(shape.dims + 1, f->shape.dims, (size_t)f->shape.rank * sizeof(*shape.dims));
        feeds[made] = arena_printf(r->arena, MODEL_EVAL "%s", f->name);
        ok = random_tensor(&values[made], (enum dtype)f->dtype, &shape, below ? 0 : -1.5,
                           below ? json_number_value(below) : 1.5, &state, r->err) &&
             npy_write(path_of(r, arena_printf(r->arena, "in%d.npy", made)), &values[made],
                       r->err);
    }
    const struct session_run run = {.feeds = feeds,
                                    .feed_values = values,
                                    .feeds_count = r->inputs,
                                    .fetches = &r->model.output,
                                    .fetches_count = 1};
    ok = ok && session_run(r->session, &run, &values[made], r->err);
    if (ok) {
        ok = npy_write(path_of(r, "out.npy"), &values[made], r->err);
        tensor_release(&values[made]);
    }
    while (made--)
        tensor_release(&values[made]);
    return ok;
}

static struct shape with_batch(const struct shape *shape)
{
    struct shape out = {.rank = shape->rank + 1, .dims = {-1}};
    memcpy(out.dims + 1, shape->dims, (size_t)shape->rank * sizeof(*shape->dims));
    return out;
}

static bool write_model(struct run *r)
{
    struct signature_tensor inputs[INPUTS_MAX];
    struct edge edge;
    struct str bytes = {0};
    if (!graph_edge(r->model.graph, r->model.output, &edge, r->err))
        return false;
    for (int i = 0; i < r->inputs; i++)
        inputs[i] = (struct signature_tensor){
            .name = r->features[i].name,
            .tensor = arena_printf(r->arena, MODEL_EVAL "%s:0", r->features[i].name),
            .dtype = r->features[i].dtype,
            .shape = with_batch(&r->features[i].shape)};
    const struct signature_tensor output = {
        .name = "predictions",
        .tensor = r->model.output,
        .dtype = edge.from->output_types[edge.output],
        .shape = with_batch(&r->model.summary.layers[r->spec->output].output)};
    const struct signature signature = {.name = "serving_default",
                                        .inputs = inputs,
                                        .inputs_count = r->inputs,
                                        .outputs = &output,
                                        .outputs_count = 1};
    const struct onnx_source source = {.name = r->name,
                                       .graph = r->model.graph,
                                       .signature = &signature,
                                       .session = r->session,
                                       .variables = r->model.variables,
                                       .values = r->values,
                                       .variables_count = r->model.variables_count};
    bool ok = onnx_convert(&source, &bytes, r->err) &&
              file_write(path_of(r, "onnx"), bytes.data, bytes.size, r->err);
    str_release(&bytes);
    return ok;
}

static bool run_case(const json_t *json, const char *folder, struct error *err)
{
    struct run r = {.json = json,
                    .name = json_string_value(json_object_get(json, "name")),
                    .folder = folder,
                    .arena = arena_new(),
                    .err = err};
    const char *weights = json_string_value(json_object_get(json, "weights"));
    bool ok = build(&r);
    if (ok) {
        r.values = alloc_array((size_t)r.model.variables_count + 1, sizeof(*r.values));
        ok = random_weights(&r) && (!weights || read_weights(&r, weights)) &&
             write_values(&r) && write_model(&r);
    }
    for (int i = 0; r.values && i < r.model.variables_count; i++)
        tensor_release(&r.values[i]);
    free(r.values);
    session_free(r.session);
    model_release(&r.model);
    arena_free(r.arena);
    return ok;
}

int main(int argc, char **argv)
{
    struct error err;
    struct str text = {0};
    int failed = 0;
    if (argc != 3 || !file_read(argv[1], BYTES_MAX, &text, &err)) {
        fprintf(stderr, "usage: onnx-write CASES.jsonl FOLDER\n");
        return 2;
    }
    kernels_add(false);
    char *state = NULL;
    for (char *line = strtok_r(text.data, "\n", &state); line;
         line = strtok_r(NULL, "\n", &state)) {
        json_error_t why;
        json_t *json = json_loads(line, 0, &why);
        bool ok = json ? run_case(json, argv[2], &err) : fail(&err, INVALID, "%s", why.text);
        if (!ok) {
            printf("FAIL onnx/%s: %s: %s\n", json_string_value(json_object_get(json, "name")),
                   error_code_name(err.code), err.text);
            failed++;
        }
        json_decref(json);
    }
    str_release(&text);
    return failed > 0;
}
