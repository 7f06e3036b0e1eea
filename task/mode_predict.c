/* mode_predict.c - trainyard predict: examples in, what a trained model says of them out. */

#include "task/mode_predict.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/spec/spec.h"
#include "runtime/tensor.h"
#include "task/arguments.h"
#include "task/predict_model.h"
#include "task/predict_output.h"
#include "task/predict_source.h"
#include "task/predict_text.h"

#define PREDICT_BATCH 256

static const char usage[] =
    "usage: trainyard predict MODEL [INPUT...] [options]\n"
    "\n"
    "What a trained model says of examples.  MODEL is the folder of a run (its newest\n"
    "checkpoint), a checkpoint (FOLDER/model.ckpt-500), a .keras file, the folder of a\n"
    "SavedModel, a MetaGraphDef (.meta, with its checkpoint beside it) or a GraphDef (.pb).\n"
    "INPUT is a file, or - or nothing for stdin: JSON ({\"instances\": [...]}, {\"inputs\": "
    "...},\n"
    "a list, or an example a line), NPY, NPZ with an array for each input, or one or more\n"
    "images.  Numbers are taken as the model was fed with them; arrays of the type that the\n"
    "training's files had, and images, are scaled as in training.\n"
    "\n"
    "  --text PROMPT     goes on with a text, for models that were trained on one\n"
    "  --length N        of it, in tokens (default: 200)\n"
    "  --temperature T   1: as likely as the model says; below: bolder; 0: always the "
    "likeliest\n"
    "  --seed N          of what is drawn (default: 1)\n"
    "  --output FILE     in place of stdout; .json, .jsonl, .npy or .npz\n"
    "  --json            a JSON document on stdout, in place of a line for each example\n"
    "  --top N           the N likeliest classes of each example, with their scores\n"
    "  --inputs          what the model takes and gives, and nothing else\n"
    "  --signature NAME  of a SavedModel or MetaGraphDef (default: serving_default)\n"
    "  --tags A,B        the meta graph of a SavedModel that has more than one\n"
    "  --scale X         what whole numbers, pixels too, are multiplied by for a model of "
    "floats\n"
    "  --batch N         examples at a time (default: 256)\n"
    "  --threads N       default: one for each CPU this process may use\n";

struct arguments {
    struct predict_wish wish;
    const char **words;
    int words_count;
    const char *output, *scale_text, *temperature_text;
    double scale;
    struct predict_text_options text;
    int64_t batch, threads, top;
    bool json, inputs, help;
};

/* --- what the model takes and gives --- */

static void tell_side(const char *what, const struct signature_tensor *tensors, int count)
{
    for (int i = 0; i < count; i++) {
        struct str line = {0};
        signature_print(&tensors[i], 1, &line);
        printf("%s  %s%s\n", i ? "       " : what, str_text(&line),
               tensors[i].when_absent ? " (may be left out)" : "");
        str_release(&line);
    }
}

static void tell_model(const struct predict_model *model)
{
    if (model->is_trained)
        printf(model->trained.is_keras ? "%s, of Keras\n" : "%s after step %lld\n",
               model->trained.spec->name, (long long)model->trained.step);
    else if (model->is_graph)
        printf("a graph, signature %s\n", model->signature->name);
    else
        printf("SavedModel, tags %s, signature %s\n", model->saved.tags,
               model->signature->name);
    tell_side("takes  ", model->signature->inputs, model->signature->inputs_count);
    tell_side("gives  ", model->signature->outputs, model->signature->outputs_count);
}

/* --- examples through the model --- */

static bool predict_batch(const struct predict_model *model, const struct tensor *inputs,
                          int64_t count, struct tensor *outputs, struct predict_output *out,
                          struct error *err)
{
    const struct signature *signature = model->signature;
    if (!signature_run(signature, model->session, inputs, outputs, err))
        return false;
    bool ok = true;
    for (int i = 0; ok && model->batches && i < signature->outputs_count; i++)
        ok = (outputs[i].shape.rank && outputs[i].shape.dims[0] == count) ||
             fail(err, INVALID,
                  "output \"%s\" has no row for each of the %lld examples: use --batch 1",
                  signature->outputs[i].name, (long long)count);
    ok = ok && predict_output_add(out, outputs, count, err);
    for (int i = 0; i < signature->outputs_count; i++)
        tensor_release(&outputs[i]);
    return ok;
}

static bool predict_all(int64_t batch, const struct predict_model *model,
                        struct predict_source *source, struct predict_output *out,
                        struct error *err)
{
    const struct signature *signature = model->signature;
    struct tensor *inputs = alloc_array((size_t)signature->inputs_count + 1, sizeof(*inputs));
    struct tensor *outputs =
        alloc_array((size_t)signature->outputs_count + 1, sizeof(*outputs));
    int64_t count = 1, done = 0;
    bool ok = true;
    while (ok && count) {
        ok = predict_source_next(source, batch, inputs, &count, err);
        if (!ok || !count)
            break;
        ok = predict_batch(model, inputs, count, outputs, out, err);
        if (!ok && done)
            error_prefix(err, "after %lld examples: ", (long long)done);
        done += count;
        for (int i = 0; i < signature->inputs_count; i++)
            tensor_release(&inputs[i]);
    }
    free(inputs);
    free(outputs);
    return ok;
}

static bool predict(const struct arguments *a, const struct predict_model *model,
                    struct error *err)
{
    static const char *const from_stdin[] = {"-"};
    bool none = a->words_count < 2;
    if (none && isatty(STDIN_FILENO))
        return fail(err, INVALID,
                    "which examples?  A file after MODEL, or on stdin; --inputs "
                    "tells what the model takes");
    const struct predict_source_options from = {.paths = none ? from_stdin : a->words + 1,
                                                .paths_count = none ? 1 : a->words_count - 1,
                                                .scale = a->scale};
    struct predict_source *source = predict_source_open(model, &from, err);
    if (!source)
        return false;
    struct predict_output_options to = {.signature = model->signature,
                                        .path = a->output,
                                        .top = a->top,
                                        .batches = model->batches};
    to.is_document = predict_source_is_document(source, &to.form) || a->json;
    if (a->top)
        to.form = PREDICT_ROWS;
    struct predict_output *out = predict_output_open(&to, err);
    /* Columns are answered by columns: of all examples. */
    bool at_once = to.is_document && to.form == PREDICT_COLUMNS;
    bool ok = out && predict_all(at_once ? INT64_MAX : a->batch, model, source, out, err);
    if (ok)
        ok = predict_output_finish(out, err);
    else
        predict_output_discard(out);
    predict_source_close(source);
    return ok;
}

/* --- the whole --- */

static bool read_number(const char *text, double *number)
{
    char *end;
    errno = 0;
    *number = strtod(text, &end);
    return !errno && end != text && !*end && isfinite(*number);
}

static bool read_numbers(struct arguments *a, struct error *err)
{
    if (a->scale_text && (!read_number(a->scale_text, &a->scale) || a->scale == 0))
        return fail(err, INVALID, "--scale is \"%s\", allowed: a number that is not 0",
                    a->scale_text);
    if (a->temperature_text &&
        (!read_number(a->temperature_text, &a->text.temperature) || a->text.temperature < 0))
        return fail(err, INVALID, "--temperature is \"%s\", allowed: a number from 0 on",
                    a->temperature_text);
    if (a->text.prompt && a->words_count > 1)
        return fail(err, INVALID, "--text goes without an INPUT, found \"%s\"", a->words[1]);
    return true;
}

static bool run(struct arguments *a, struct error *err)
{
    struct predict_model model;
    if (!read_numbers(a, err))
        return false;
    a->wish.path = a->words[0];
    a->wish.threads = arguments_set_threads(a->threads);
    if (!a->batch)
        a->batch = INT64_MAX;
    if (!predict_model_open(&a->wish, &model, err))
        return false;
    bool ok = true;
    if (a->inputs)
        tell_model(&model);
    else if (a->text.prompt)
        ok = predict_text(&model, &a->text, err);
    else
        ok = predict(a, &model, err);
    predict_model_close(&model);
    return ok;
}

int mode_predict(int argc, char **argv)
{
    struct arguments a = {.batch = PREDICT_BATCH,
                          .text = {.length = 200, .temperature = 1, .seed = 1}};
    a.words = alloc_array((size_t)argc + 1, sizeof(*a.words));
    const struct argument rows[] = {
        {.name = "--output", .text = &a.output},
        {.name = "--signature", .text = &a.wish.signature},
        {.name = "--tags", .text = &a.wish.tags},
        {.name = "--scale", .text = &a.scale_text},
        {.name = "--text", .text = &a.text.prompt},
        {.name = "--length", .number = &a.text.length, .max = 1000000000},
        {.name = "--temperature", .text = &a.temperature_text},
        {.name = "--seed", .number = &a.text.seed, .max = INT64_MAX},
        {.name = "--batch", .number = &a.batch, .max = 1000000},
        {.name = "--top", .number = &a.top, .max = 1000000},
        {.name = "--threads", .number = &a.threads, .max = 4096},
        {.name = "--json", .flag = &a.json},
        {.name = "--inputs", .flag = &a.inputs},
        {.name = "--help", .flag = &a.help}};
    struct error err;
    int code = 0;
    bool ok = arguments_read(argc, argv, rows, ARRAY_LEN(rows), a.words, argc + 1,
                             &a.words_count, &err);
    if (ok && a.help) {
        fputs(usage, stdout);
    } else {
        if (ok && !a.words_count)
            ok = fail(&err, INVALID,
                      "which model?  The folder of a run or of a SavedModel, or a checkpoint "
                      "(--help tells more)");
        if (!ok || !run(&a, &err)) {
            fprintf(stderr, "trainyard: %s\n", err.text);
            code = arguments_exit_code(&err);
        }
    }
    free(a.words);
    return code;
}
