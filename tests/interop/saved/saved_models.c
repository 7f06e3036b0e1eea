/*
 * saved_models.c - SavedModels and MetaGraphs that TensorFlow wrote: opened, called, trained
 * on.
 *
 *   saved-models FOLDER...
 *
 * A folder has an expected.json beside its model: "calls" of signatures with their outputs, or
 * the output of a graph and its losses over three steps.  A line for each failure, totals last.
 */

#include <jansson.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "kernels/list.h"
#include "runtime/graph.h"
#include "runtime/graph_file.h"
#include "runtime/saved_model.h"
#include "runtime/session.h"
#include "tests/interop/keras/value.h"
#include "tests/interop/saved/text_pb.h"

enum { TENSORS_MAX = 64 };

struct totals {
    int passed, failed;
};

static void count(struct totals *totals, bool ok, const char *folder, const char *what,
                  const struct error *err)
{
    *(ok ? &totals->passed : &totals->failed) += 1;
    if (!ok)
        printf("FAIL %s %s: %s\n", folder, what, err->text);
}

static double number(const json_t *json, const char *name, double absent)
{
    const json_t *value = json_object_get(json, name);
    return value ? json_number_value(value) : absent;
}

static bool is_file(const char *folder, const char *name)
{
    struct stat info;
    char *path = alloc_printf("%s/%s", folder, name);
    bool there = stat(path, &info) == 0;
    free(path);
    return there;
}

/* --- calls of signatures --- */

static bool check_outputs(const struct signature *signature, const struct tensor *outputs,
                          const json_t *call, struct error *err)
{
    const json_t *wanted = json_object_get(call, "outputs");
    if ((int)json_object_size(wanted) != signature->outputs_count)
        return fail(err, INVALID, "%d outputs, wanted %zu", signature->outputs_count,
                    json_object_size(wanted));
    for (int i = 0; i < signature->outputs_count; i++) {
        const char *name = signature->outputs[i].name;
        struct tensor want;
        if (!value_read(json_object_get(wanted, name), &want, err))
            return error_prefix(err, "output %s: ", name);
        bool ok = value_check(name, &outputs[i], &want, number(call, "rtol", 1e-5),
                              number(call, "atol", 1e-6), err);
        tensor_release(&want);
        if (!ok)
            return false;
    }
    return true;
}

static bool call_signature(const struct saved_model *model, const json_t *call,
                           struct error *err)
{
    const struct signature *signature = saved_model_signature(
        model, json_string_value(json_object_get(call, "signature")), err);
    struct tensor inputs[TENSORS_MAX] = {0}, outputs[TENSORS_MAX] = {0};
    const char *name;
    json_t *value;
    bool ok = signature != NULL;
    json_object_foreach(json_object_get(call, "inputs"), name, value)
    {
        int index = ok ? signature_find_input(signature, name) : 0;
        ok = ok && (index >= 0 || fail(err, INVALID, "there is no input %s", name)) &&
             value_read(value, &inputs[index], err);
    }
    if (ok) {
        ok = signature_run(signature, model->session, inputs, outputs, err) &&
             check_outputs(signature, outputs, call, err);
        for (int i = 0; i < signature->outputs_count; i++)
            tensor_release(&outputs[i]);
    }
    for (int i = 0; i < TENSORS_MAX; i++)
        tensor_release(&inputs[i]);
    return ok;
}

static void run_saved(const char *folder, const json_t *expected, struct totals *totals)
{
    const json_t *call;
    size_t i;
    json_array_foreach(json_object_get(expected, "calls"), i, call)
    {
        struct str tags = {0};
        struct saved_model model;
        struct error err;
        const json_t *tag;
        size_t t;
        json_array_foreach(json_object_get(call, "tags"), t, tag)
            str_printf(&tags, "%s%s", t ? "," : "", json_string_value(tag));
        bool ok = saved_model_open(folder, str_text(&tags), NULL, &model, &err);
        if (ok) {
            ok = call_signature(&model, call, &err);
            saved_model_close(&model);
        }
        count(totals, ok, folder, json_string_value(json_object_get(call, "signature")), &err);
        str_release(&tags);
    }
}

/* --- graphs --- */

struct feeds {
    const char *names[TENSORS_MAX];
    struct tensor values[TENSORS_MAX];
    int count;
};

static bool read_feeds(const json_t *expected, struct feeds *feeds, struct error *err)
{
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(expected, "feeds"), name, value)
    {
        feeds->names[feeds->count] = name;
        if (feeds->count == TENSORS_MAX ||
            !value_read(value, &feeds->values[feeds->count], err))
            return error_prefix(err, "feed %s: ", name);
        feeds->count++;
    }
    return true;
}

static bool check_fetch(struct session *session, const struct feeds *feeds,
                        const json_t *expected, struct error *err)
{
    const char *fetch = json_string_value(json_object_get(expected, "fetch"));
    const struct session_run run = {.feeds = feeds->names,
                                    .feed_values = feeds->values,
                                    .feeds_count = feeds->count,
                                    .fetches = &fetch,
                                    .fetches_count = 1};
    struct tensor got, want;
    if (!session_run(session, &run, &got, err))
        return false;
    bool ok = value_read(json_object_get(expected, "output"), &want, err);
    if (ok) {
        ok = value_check(fetch, &got, &want, number(expected, "rtol", 1e-5),
                         number(expected, "atol", 1e-6), err);
        tensor_release(&want);
    }
    tensor_release(&got);
    return ok;
}

static bool check_training(struct session *session, const struct feeds *feeds,
                           const json_t *expected, struct error *err)
{
    const char *loss = json_string_value(json_object_get(expected, "loss"));
    const char *train = json_string_value(json_object_get(expected, "train_op"));
    const struct session_run run = {.feeds = feeds->names,
                                    .feed_values = feeds->values,
                                    .feeds_count = feeds->count,
                                    .fetches = &loss,
                                    .fetches_count = 1,
                                    .targets = &train,
                                    .targets_count = 1};
    const json_t *wanted;
    size_t step;
    json_array_foreach(json_object_get(expected, "losses_of_3_steps"), step, wanted)
    {
        struct tensor got, want;
        if (!session_run(session, &run, &got, err) ||
            !tensor_init_scalar(&want, got.dtype, json_number_value(wanted), err))
            return error_prefix(err, "step %zu: ", step + 1);
        bool ok = value_check("loss", &got, &want, 1e-4, 1e-6, err);
        tensor_release(&got);
        tensor_release(&want);
        if (!ok)
            return error_prefix(err, "step %zu: ", step + 1);
    }
    return true;
}

static bool run_meta(const char *folder, const struct feeds *feeds, const json_t *expected,
                     struct error *err)
{
    struct saved_model model;
    char *path = alloc_printf("%s/model.meta", folder);
    char *prefix = alloc_printf("%s/model", folder);
    bool ok = saved_model_open_meta(path, prefix, NULL, &model, err);
    free(path);
    free(prefix);
    if (!ok)
        return false;
    ok = check_fetch(model.session, feeds, expected, err) &&
         check_training(model.session, feeds, expected, err);
    saved_model_close(&model);
    return ok;
}

/* A graph without variables, by any of its forms. */
static bool run_frozen(const char *folder, const char *name, const struct feeds *feeds,
                       const json_t *expected, struct error *err)
{
    struct str what = {0};
    struct graph *graph = graph_new();
    char *path = alloc_printf("%s/%s", folder, name);
    struct session *session = session_new(NULL, err);
    bool ok = session && graph_file_read(path, NULL, graph, &what, err) &&
              session_extend_graph(session, graph, err) &&
              check_fetch(session, feeds, expected, err);
    session_free(session);
    graph_free(graph);
    free(path);
    str_release(&what);
    return ok;
}

static void run_graphs(const char *folder, const json_t *expected, struct totals *totals)
{
    static const char *const frozen[] = {"frozen.pb", "frozen.pbtxt"};
    struct feeds feeds = {0};
    struct error err;
    if (is_file(folder, "model.meta")) {
        bool ok = read_feeds(expected, &feeds, &err);
        count(totals, ok && run_meta(folder, &feeds, expected, &err), folder, "model.meta",
              &err);
        for (int i = 0; ok && i < ARRAY_LEN(frozen); i++)
            count(totals, run_frozen(folder, frozen[i], &feeds, expected, &err), folder,
                  frozen[i], &err);
        count(totals, text_check_pair(folder, "frozen.pb", "frozen.pbtxt", &err), folder,
              "frozen.pbtxt as frozen.pb", &err);
    } else {
        count(totals, text_check_pair(folder, "graph.pb", "graph.pbtxt", &err), folder,
              "graph.pbtxt as graph.pb", &err);
    }
    count(totals, text_check_print(folder, "graph.pbtxt", &err), folder, "graph.pbtxt printed",
          &err);
    for (int i = 0; i < feeds.count; i++)
        tensor_release(&feeds.values[i]);
}

/* --- the whole --- */

int main(int argc, char **argv)
{
    struct totals totals = {0};
    kernels_add(false);
    for (int i = 1; i < argc; i++) {
        char *path = alloc_printf("%s/expected.json", argv[i]);
        json_error_t why;
        struct error err;
        json_t *expected = json_load_file(path, 0, &why);
        free(path);
        if (!expected)
            count(&totals, fail(&err, INVALID, "%s", why.text), argv[i], "expected.json", &err);
        else if (json_object_get(expected, "calls"))
            run_saved(argv[i], expected, &totals);
        else
            run_graphs(argv[i], expected, &totals);
        json_decref(expected);
    }
    printf("%d passed, %d failed\n", totals.passed, totals.failed);
    return totals.failed != 0 || !totals.passed;
}
