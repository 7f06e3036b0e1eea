/*
 * vectors.c - recorded computations of Keras, run by our layers, losses, optimizers,
 * schedules, metrics and initialisers.
 *
 *   keras-vectors [--only TEXT] [--save FOLDER] FILE.jsonl|FOLDER_OF_A_MODEL ...
 *
 * --save writes each trained model to FOLDER/NAME.keras and .weights.h5.
 *
 * A line for each that differs, one for each class that is missing, and the counts at the end.
 */

#include <stdio.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "kernels/list.h"
#include "runtime/gradient.h"
#include "runtime/io/archive.h"
#include "runtime/model/layer.h"
#include "runtime/model/loss.h"
#include "runtime/model/metric.h"
#include "runtime/model/optimizer.h"
#include "runtime/resource.h"
#include "runtime/session.h"
#include "tests/interop/keras/model.h"
#include "tests/interop/keras/value.h"

enum { ITEMS_MAX = 64 };

/* One case: a graph, what is fed and what is fetched. */
struct vector {
    const json_t *json;
    struct arena *arena;
    struct graph *graph;
    struct build m;
    struct session *session;
    struct error *err;
    double relative, absolute;

    const char *feeds[ITEMS_MAX];
    struct tensor feed_values[ITEMS_MAX];
    int feeds_count;
    const char *fetches[ITEMS_MAX];
    const json_t *wanted[ITEMS_MAX];
    const char *labels[ITEMS_MAX];
    int fetches_count;
};

/* --- building --- */

/* A placeholder of the array's type and shape, which is fed with it. */
static struct edge feed(struct vector *v, const json_t *array)
{
    struct tensor *value = &v->feed_values[v->feeds_count];
    if (!build_ok(&v->m))
        return (struct edge){0};
    if (v->feeds_count == ITEMS_MAX || !value_read(array, value, v->err)) {
        v->m.b.failed = true;
        return (struct edge){0};
    }
    struct edge edge = builder_add(
        &v->m.b, "Placeholder", "input", NO_INPUTS,
        ATTRS(attr_type("dtype", value->dtype), attr_shape("shape", &value->shape)));
    v->feeds[v->feeds_count++] =
        edge.from ? arena_printf(v->arena, "%s:0", edge.from->name) : "";
    return edge;
}

static void fetch(struct vector *v, const char *label, struct edge edge, const json_t *wanted)
{
    if (!edge.from || !wanted || json_is_null(wanted) || v->fetches_count == ITEMS_MAX)
        return;
    edge = build_unary(&v->m, "Identity", edge); /* what is fed cannot be fetched */
    if (!edge.from)
        return;
    v->fetches[v->fetches_count] =
        arena_printf(v->arena, "%s:%d", edge.from->name, edge.output);
    v->wanted[v->fetches_count] = wanted;
    v->labels[v->fetches_count++] = label;
}

/* The configuration of the case; false after an error. */
static bool read_config(struct vector *v, const struct config_class *class,
                        const struct config_family *family, json_t *json,
                        const struct config **out)
{
    struct spec_object object = {json, "/config", v->arena, v->err};
    return config_read_keras_object(&object, class, family, out);
}

/* --- running --- */

static bool start(struct vector *v)
{
    static const char *const targets[] = {"init"};
    builder_group(&v->m.b, "init", v->m.inits, v->m.inits_count);
    if (!build_ok(&v->m))
        return false;
    v->session = session_new(&(struct session_options){.threads = 1}, v->err);
    return v->session && session_extend_graph(v->session, v->graph, v->err) &&
           session_run(v->session,
                       &(struct session_run){.targets = targets, .targets_count = 1}, NULL,
                       v->err);
}

static bool with_variable(struct vector *v, int weight, const json_t *set, const char *label,
                          const json_t *check)
{
    const struct model_variable *face = &v->m.weights[weight].face;
    struct variable *variable =
        resources_variable(session_resources(v->session), "", face->name,
                           (enum dtype)face->dtype, &face->shape, v->err);
    struct tensor value;
    if (!variable)
        return false;
    bool ok = value_read(set ? set : check, &value, v->err);
    if (ok && set && !shape_equal(&value.shape, &face->shape)) {
        char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
        ok = fail(v->err, INVALID, "the weight %s is %s, wanted %s", face->name,
                  shape_text(&face->shape, a, sizeof(a)),
                  shape_text(&value.shape, b, sizeof(b)));
        tensor_release(&value);
    } else if (ok && set) {
        tensor_release(&variable->value);
        variable->value = value;
    } else if (ok) {
        ok = value_check(label, &variable->value, &value, v->relative, v->absolute, v->err);
        tensor_release(&value);
    }
    resource_unref(&variable->resource);
    return ok;
}

static bool run(struct vector *v, const char *const *targets, int targets_count)
{
    struct tensor fetched[ITEMS_MAX];
    struct session_run run = {.feeds = v->feeds,
                              .feed_values = v->feed_values,
                              .feeds_count = v->feeds_count,
                              .fetches = v->fetches,
                              .fetches_count = v->fetches_count,
                              .targets = targets,
                              .targets_count = targets_count};
    if (!session_run(v->session, &run, fetched, v->err))
        return false;
    bool ok = true;
    for (int i = 0; i < v->fetches_count; i++) {
        struct tensor want;
        if (ok && value_read(v->wanted[i], &want, v->err)) {
            ok =
                value_check(v->labels[i], &fetched[i], &want, v->relative, v->absolute, v->err);
            tensor_release(&want);
        } else {
            ok = false;
        }
        tensor_release(&fetched[i]);
    }
    return ok;
}

/* --- layers --- */

/* Arguments of the call stand among those of the class in our specs. */
static json_t *layer_config(const json_t *json)
{
    json_t *config = json_copy(json_object_get(json, "config")); /* its values are shared */
    json_object_update(config, json_object_get(json, "call"));
    return config;
}

static void add_gradients(struct vector *v, const struct layer_call *call)
{
    const json_t *grads = json_object_get(v->json, "grad_output");
    const json_t *grad_input = json_object_get(v->json, "grad_input");
    const json_t *grad_weights = json_object_get(v->json, "grad_weights");
    if (!json_is_array(grads) || !build_ok(&v->m))
        return;
    struct edge xs[ITEMS_MAX], grad_ys[LAYER_OUTPUTS_MAX], out[ITEMS_MAX];
    const json_t *wanted[ITEMS_MAX];
    const char *labels[ITEMS_MAX];
    int count = 0;
    for (int i = 0; i < call->outputs_count; i++)
        grad_ys[i] = feed(v, json_array_get(grads, (size_t)i));
    for (int i = 0; i < (int)json_array_size(grad_input); i++) {
        xs[count] = call->inputs[i];
        labels[count] = arena_printf(v->arena, "grad_input[%d]", i);
        wanted[count++] = json_array_get(grad_input, (size_t)i);
    }
    for (size_t i = 0, w = 0; i < (size_t)v->m.weights_count; i++) {
        const json_t *row = json_array_get(grad_weights, w);
        if (!v->m.weights[i].face.trainable || !row)
            continue;
        xs[count] = v->m.weights[i].handle;
        labels[count] = arena_printf(v->arena, "gradient of %s", v->m.weights[i].face.name);
        wanted[count++] = json_object_get(row, "grad");
        w++;
    }
    if (!build_ok(&v->m) || !gradient_build(v->graph, call->outputs, call->outputs_count,
                                            grad_ys, xs, count, out, v->err)) {
        v->m.b.failed = true;
        return;
    }
    for (int i = 0; i < count; i++)
        fetch(v, labels[i], out[i], wanted[i]);
}

static bool run_layer(struct vector *v, const struct config_class *class)
{
    json_t *arguments = layer_config(v->json);
    const json_t *inputs = json_object_get(v->json, "input");
    const json_t *weights = json_object_get(v->json, "weights");
    const json_t *after = json_object_get(v->json, "weights_after");
    struct edge xs[ITEMS_MAX];
    struct layer_call call = {.m = &v->m,
                              .class = layer_of(class),
                              .name = "layer",
                              .inputs = xs,
                              .training = json_is_true(json_object_get(v->json, "training")),
                              .trainable = true};
    bool ok = read_config(v, class, &layer_family, arguments, &call.config);
    json_decref(arguments);
    if (!ok)
        return false;
    v->m.training = call.training;
    call.inputs_count = (int)json_array_size(inputs);
    for (int i = 0; i < call.inputs_count; i++)
        xs[i] = feed(v, json_array_get(inputs, (size_t)i));
    const json_t *mask = json_object_get(json_object_get(v->json, "call"), "attention_mask");
    if (mask) { /* query, value, key, mask */
        xs[2] = xs[1];
        xs[3] = feed(v, mask);
        call.inputs_count = 4;
    }
    v->m.step = build_number(&v->m, I64, 0);
    layer_run(&call);
    const json_t *wanted = json_object_get(v->json, "output");
    if (build_ok(&v->m) && (size_t)call.outputs_count != json_array_size(wanted))
        return fail(v->err, INVALID, "%d outputs, wanted %zu", call.outputs_count,
                    json_array_size(wanted));
    for (int i = 0; i < call.outputs_count; i++)
        fetch(v, arena_printf(v->arena, "output[%d]", i), call.outputs[i],
              json_array_get(wanted, (size_t)i));
    int weights_count = v->m.weights_count;
    add_gradients(v, &call);
    builder_group(&v->m.b, "updates", v->m.updates, v->m.updates_count);
    if (!start(v))
        return false;
    if ((size_t)weights_count != json_array_size(weights))
        return fail(v->err, INVALID, "%d weights, wanted %zu", weights_count,
                    json_array_size(weights));
    for (int i = 0; ok && i < weights_count; i++)
        ok = with_variable(v, i, json_array_get(weights, (size_t)i), NULL, NULL);
    ok = ok && run(v, (const char *[]){"updates"}, 1);
    for (int i = 0; ok && i < weights_count && json_is_array(after); i++)
        ok = with_variable(v, i, NULL, v->m.weights[i].face.name,
                           json_array_get(after, (size_t)i));
    return ok;
}

/* --- losses --- */

static bool run_loss(struct vector *v, const struct config_class *class)
{
    const struct config *config;
    struct edge weights = {0}, grad = {0};
    if (!read_config(v, class, &loss_family, json_object_get(v->json, "config"), &config))
        return false;
    struct edge y_true = feed(v, json_object_get(v->json, "y_true"));
    struct edge y_pred = feed(v, json_object_get(v->json, "y_pred"));
    if (json_is_object(json_object_get(v->json, "sample_weight")))
        weights = feed(v, json_object_get(v->json, "sample_weight"));
    struct edge values = loss_values(&v->m, config, y_true, y_pred, loss_takes_logits(config));
    struct edge loss = loss_reduce(&v->m, config, values, weights);
    fetch(v, "output", loss, json_object_get(v->json, "output"));
    if (json_is_object(json_object_get(v->json, "grad_y_pred")) && build_ok(&v->m)) {
        v->m.b.failed = !gradient_build(v->graph, &loss, 1, NULL, &y_pred, 1, &grad, v->err);
        fetch(v, "grad_y_pred", grad, json_object_get(v->json, "grad_y_pred"));
    }
    return start(v) && run(v, NULL, 0);
}

/* --- optimizers --- */

/* c * (v - t), of each variable. */
static struct edge quadratic(struct vector *v, int weight, const json_t *c, const json_t *t)
{
    struct edge value = build_weight_read(&v->m, weight);
    struct edge away = build_binary(&v->m, "Sub", value, feed(v, t));
    return build_binary(&v->m, "Mul", feed(v, c), away);
}

static bool make_optimizer(struct vector *v, const struct config *config, int variables)
{
    struct build *m = &v->m;
    struct edge gradients[ITEMS_MAX];
    struct node *nodes[ITEMS_MAX], **updates;
    int count = 0;
    struct edge zero = builder_scalar(&m->b, "global_step/zero", I64, 0);
    int step = build_weight_add(m, "global_step", &SHAPE_SCALAR, I64, false, zero);
    m->step = builder_add(&m->b, "ReadVariableOp", "global_step/Read",
                          INPUTS(m->weights[step].handle), ATTRS(attr_type("dtype", I64)));
    for (int i = 0; i < variables && build_ok(m); i++) {
        gradients[i] = quadratic(v, i, json_array_get(json_object_get(v->json, "c"), (size_t)i),
                                 json_array_get(json_object_get(v->json, "t"), (size_t)i));
        nodes[i] = gradients[i].from;
    }
    if (!build_ok(m))
        return false;
    struct node *after = builder_group(&m->b, "gradients/done", nodes, variables);
    updates = arena_array(v->arena, (size_t)optimizer_updates_max(m) + 1, sizeof(*updates));
    optimizer_build(m, config, gradients, after, updates, &count);
    struct edge one = builder_scalar(&m->b, "one", I64, 1);
    struct edge advance =
        builder_add(&m->b, "AssignAddVariableOp", "advance",
                    INPUTS(m->weights[step].handle, one), ATTRS(attr_type("dtype", I64)));
    if (build_ok(m))
        graph_add_control(v->graph, advance.from, after);
    if (build_ok(m))
        updates[count++] = advance.from;
    builder_group(&m->b, "train", updates, count);
    return start(v);
}

static bool run_optimizer(struct vector *v, const struct config_class *class)
{
    const json_t *initial = json_object_get(v->json, "initial"),
                 *steps = json_object_get(v->json, "steps");
    const struct config *config;
    int variables = (int)json_array_size(initial);
    if (!read_config(v, class, &optimizer_family, json_object_get(v->json, "config"), &config))
        return false;
    for (int i = 0; i < variables; i++) {
        struct tensor value;
        if (!value_read(json_array_get(initial, (size_t)i), &value, v->err))
            return false;
        struct edge start_value = builder_const(&v->m.b, "initial", &value);
        build_weight_add(&v->m, arena_printf(v->arena, "v%d", i), &value.shape, F32, true,
                         start_value);
        tensor_release(&value);
    }
    if (!make_optimizer(v, config, variables))
        return false;
    for (size_t s = 0; s < json_array_size(steps); s++) {
        if (!run(v, (const char *[]){"train"}, 1))
            return false;
        for (int i = 0; i < variables; i++) {
            const char *label = arena_printf(v->arena, "variable %d after step %zu", i, s + 1);
            if (!with_variable(v, i, NULL, label,
                               json_array_get(json_array_get(steps, s), (size_t)i)))
                return false;
        }
    }
    return true;
}

/* --- schedules, metrics, initialisers --- */

static bool run_schedule(struct vector *v, const struct config_class *class)
{
    const struct config *config;
    const json_t *steps = json_object_get(v->json, "steps");
    struct tensor want;
    if (!read_config(v, class, &schedule_family, json_object_get(v->json, "config"), &config))
        return false;
    struct edge step =
        builder_add(&v->m.b, "Placeholder", "step", NO_INPUTS,
                    ATTRS(attr_type("dtype", I64), attr_shape("shape", &SHAPE_SCALAR)));
    struct edge rate = schedule_build(&v->m, config, step);
    if (!start(v) || !value_read(json_object_get(v->json, "output"), &want, v->err))
        return false;
    bool ok = true;
    const char *fetches[] = {arena_printf(v->arena, "%s:%d", rate.from->name, rate.output)};
    for (size_t i = 0; ok && i < json_array_size(steps); i++) {
        struct tensor value, got, expected;
        ok = tensor_init_scalar(&value, I64,
                                (double)json_integer_value(json_array_get(steps, i)), v->err);
        if (!ok)
            break;
        ok = session_run(v->session,
                         &(struct session_run){.feeds = (const char *[]){"step"},
                                               .feed_values = &value,
                                               .feeds_count = 1,
                                               .fetches = fetches,
                                               .fetches_count = 1},
                         &got, v->err);
        tensor_release(&value);
        if (!ok)
            break;
        ok = tensor_init_scalar(&expected, F32, tensor_number(&want, (int64_t)i), v->err) &&
             value_check(arena_printf(v->arena, "rate %zu", i), &got, &expected, v->relative,
                         v->absolute, v->err);
        tensor_release(&got);
        tensor_release(&expected);
    }
    tensor_release(&want);
    return ok;
}

/* The graph is made anew for each batch, which may have another shape; the sums add up. */
static bool add_batch(struct vector *v, const struct config *config, const json_t *batch,
                      double **sums, int *count)
{
    struct tensor got;
    struct metric_call call = {.m = &v->m, .config = config};
    bool plain = !json_object_get(batch, "y_pred"); /* Mean and Sum take values */
    call.y_pred = feed(v, json_object_get(batch, plain ? "values" : "y_pred"));
    call.y_true = plain ? call.y_pred : feed(v, json_object_get(batch, "y_true"));
    if (json_is_object(json_object_get(batch, "sample_weight")))
        call.weights = feed(v, json_object_get(batch, "sample_weight"));
    struct edge edge = metric_sums(&call);
    if (!start(v))
        return false;
    const char *fetches[] = {arena_printf(v->arena, "%s:%d", edge.from->name, edge.output)};
    if (!session_run(v->session,
                     &(struct session_run){.feeds = v->feeds,
                                           .feed_values = v->feed_values,
                                           .feeds_count = v->feeds_count,
                                           .fetches = fetches,
                                           .fetches_count = 1},
                     &got, v->err))
        return false;
    if (!*sums)
        *sums = alloc_array((size_t)got.count + 1, sizeof(**sums));
    *count = (int)got.count;
    for (int i = 0; i < *count; i++)
        (*sums)[i] += tensor_number(&got, i);
    tensor_release(&got);
    return true;
}

static void vector_open(struct vector *v, const json_t *json, struct error *err);
static void vector_close(struct vector *v);

static bool run_metric(struct vector *v, const struct config_class *class)
{
    const struct config *config;
    const json_t *batches = json_object_get(v->json, "batches");
    double *sums = NULL;
    int count = 0;
    bool ok =
        read_config(v, class, &metric_family, json_object_get(v->json, "config"), &config);
    for (size_t i = 0; ok && i < json_array_size(batches); i++) {
        struct vector one;
        struct tensor got, want;
        vector_open(&one, v->json, v->err);
        ok = add_batch(&one, config, json_array_get(batches, i), &sums, &count);
        vector_close(&one);
        const json_t *outputs = json_object_get(v->json, "output");
        if (!ok || !value_read(json_array_get(outputs, i), &want, v->err)) {
            ok = false;
            break;
        }
        double results[METRIC_RESULTS_MAX];
        int numbers = metric_results(config, sums, count, results);
        const struct shape shape = want.shape.rank ? SHAPE(numbers) : SHAPE_SCALAR;
        ok = tensor_init(&got, F32, &shape, v->err);
        for (int r = 0; ok && r < got.count; r++)
            tensor_set_number(&got, r, results[r]);
        ok = ok && value_check(arena_printf(v->arena, "result %zu", i), &got, &want,
                               v->relative, v->absolute, v->err);
        tensor_release(&got);
        tensor_release(&want);
    }
    free(sums);
    return ok;
}

static bool run_initializer(struct vector *v, const struct config_class *class)
{
    const struct config *config;
    const json_t *dims = json_object_get(v->json, "shape");
    struct shape shape = {.rank = (int)json_array_size(dims)};
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = json_integer_value(json_array_get(dims, (size_t)i));
    if (!read_config(v, class, &build_initializer_family, json_object_get(v->json, "config"),
                     &config))
        return false;
    if (!json_is_true(json_object_get(v->json, "exact")))
        v->absolute = 1e-6; /* the last bits of a decomposition may differ */
    struct edge value = build_initializer(&v->m, "w", config, &shape);
    fetch(v, "output", value, json_object_get(v->json, "output"));
    return start(v) && run(v, NULL, 0);
}

/* --- the files --- */

static const struct {
    const char *kind;
    const struct config_family *family;
    bool (*run)(struct vector *v, const struct config_class *class);
} kinds[] = {
    {"layer", &layer_family, run_layer},
    {"loss", &loss_family, run_loss},
    {"optimizer", &optimizer_family, run_optimizer},
    {"schedule", &schedule_family, run_schedule},
    {"metric", &metric_family, run_metric},
    {"initializer", &build_initializer_family, run_initializer},
};

static void vector_open(struct vector *v, const json_t *json, struct error *err)
{
    struct graph *graph = graph_new();
    *v = (struct vector){.json = json, .arena = arena_new(), .graph = graph, .err = err};
    v->m = (struct build){.b = {.graph = graph, .scope = "", .err = err},
                          .arena = graph_arena(graph),
                          .pointer = ""};
    v->relative = json_number_value(json_object_get(json, "rtol"));
    v->absolute = json_number_value(json_object_get(json, "atol"));
}

static void vector_close(struct vector *v)
{
    session_free(v->session);
    for (int i = 0; i < v->feeds_count; i++)
        tensor_release(&v->feed_values[i]);
    build_release(&v->m);
    graph_free(v->graph);
    arena_free(v->arena);
}

struct totals {
    int passed, failed, skipped;
};

/* What Keras does not write into its configurations: the recordings have these. */
static const struct {
    const char *class, *argument;
    double value;
} unwritten[] = {{"Huber", "delta", 0.5}, {"Huber", "delta", 2}, {"Identity", "gain", 2}};

static bool run_vector(const json_t *json,
                       bool (*how)(struct vector *v, const struct config_class *class),
                       const struct config_class *class, struct error *err)
{
    struct vector v;
    vector_open(&v, json, err);
    bool ok = how(&v, class);
    vector_close(&v);
    return ok;
}

static void run_line(const json_t *json, struct totals *totals)
{
    const char *kind = json_string_value(json_object_get(json, "kind"));
    const char *name = json_string_value(json_object_get(json, "name"));
    const char *class_name = json_string_value(json_object_get(json, "class"));
    struct error err = {0};
    int k = 0;
    while (k < ARRAY_LEN(kinds) && strcmp(kinds[k].kind, kind) != 0)
        k++;
    const struct config_class *class =
        k < ARRAY_LEN(kinds) ? config_find(kinds[k].family, class_name) : NULL;
    if (!class) {
        printf("missing %s %s\n", kind, class_name);
        totals->skipped++;
        return;
    }
    bool ok = run_vector(json, kinds[k].run, class, &err);
    for (int i = 0; !ok && i < ARRAY_LEN(unwritten); i++) {
        if (strcmp(class_name, unwritten[i].class))
            continue;
        json_object_set_new(json_object_get(json, "config"), unwritten[i].argument,
                            json_real(unwritten[i].value));
        ok = run_vector(json, kinds[k].run, class, &err);
    }
    totals->passed += ok;
    totals->failed += !ok;
    if (!ok)
        printf("FAIL %s: %s\n", name, err.text);
}

static bool run_file(const char *path, const char *only, struct totals *totals)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    if (!file) {
        perror(path);
        return false;
    }
    while (getline(&line, &room, file) > 0) {
        json_t *json = json_loads(line, 0, NULL);
        const char *name = json_string_value(json_object_get(json, "name"));
        if (name && (!only || strstr(name, only)))
            run_line(json, totals);
        json_decref(json);
    }
    free(line);
    fclose(file);
    return true;
}

/* A folder with model.json and expected.json. */
/* The model of a .keras file. */
static json_t *load_archive(const char *path)
{
    struct error err;
    struct str text = {0};
    struct archive *archive = archive_open(path, &err);
    int index = archive ? archive_find(archive, "config.json") : -1;
    json_t *model = NULL;
    if (index >= 0 && archive_read(archive, index, 1 << 24, &text, &err))
        model = json_loadb(text.data, text.size, 0, NULL);
    archive_close(archive);
    str_release(&text);
    return model;
}

static bool is_there(const char *path)
{
    struct stat info;
    return !stat(path, &info);
}

static const char *folder_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* model.json with the recorded weights and with those of each file, model.keras by itself. */
static void run_folder(const char *path, const char *save, struct totals *totals)
{
    static const char *const files[] = {NULL, "model.weights.h5", "model.keras", "model.h5"};
    char name[4096];
    snprintf(name, sizeof(name), "%s/expected.json", path);
    json_t *wanted = json_load_file(name, 0, NULL);
    for (int i = 0; i < ARRAY_LEN(files); i++) {
        struct error err = {0};
        char weights[4096];
        snprintf(weights, sizeof(weights), "%s/%s", path, files[i] ? files[i] : "");
        snprintf(name, sizeof(name), "%s/model.json", path);
        if (files[i] ? !is_there(weights) : wanted && !json_object_get(wanted, "weights"))
            continue;
        json_t *model = i == 2 ? load_archive(weights) : json_load_file(name, 0, NULL);
        char saved[4096] = "";
        if (save && i == 1)
            snprintf(saved, sizeof(saved), "%s/%s", save, folder_name(path));
        bool ok = model && wanted ? model_run_recorded(model, files[i] ? weights : NULL, wanted,
                                                       saved[0] ? saved : NULL, &err)
                                  : fail(&err, NOT_FOUND, "no model.json or no expected.json");
        json_decref(model);
        totals->passed += ok;
        totals->failed += !ok;
        if (!ok)
            printf("FAIL %s: %s%s%s\n", weights, err.pointer, err.pointer[0] ? ": " : "",
                   err.text);
    }
    json_decref(wanted);
}

int main(int argc, char **argv)
{
    struct totals totals = {0};
    const char *only = NULL, *save = NULL;
    struct stat info;
    kernels_add(false);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--only") && i + 1 < argc)
            only = argv[++i];
        else if (!strcmp(argv[i], "--save") && i + 1 < argc)
            save = argv[++i];
        else if (!stat(argv[i], &info) && S_ISDIR(info.st_mode))
            run_folder(argv[i], save, &totals);
        else if (!run_file(argv[i], only, &totals))
            return 2;
    }
    printf("%d passed, %d failed, %d skipped\n", totals.passed, totals.failed, totals.skipped);
    return totals.failed != 0;
}
