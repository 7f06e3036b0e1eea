/* mode_evaluate.c - trainyard evaluate: loss and metrics of a trained model over a part of its
 * data. */

#include "task/mode_evaluate.h"

#include <math.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/saved_model.h"
#include "runtime/session.h"
#include "runtime/spec/spec.h"
#include "runtime/train/evaluate.h"
#include "runtime/train/runner.h"
#include "runtime/train/trained.h"
#include "task/arguments.h"

static const char usage[] =
    "usage: trainyard evaluate MODEL [options]\n"
    "\n"
    "The loss and the metrics of a trained model, over examples that it was not trained on.\n"
    "MODEL is the folder of a run (its newest checkpoint) or a checkpoint\n"
    "(FOLDER/model.ckpt-500).\n"
    "\n"
    "  --data FOLDER  the dataset's files (default: datasets/NAME, as its spec names it)\n"
    "  --part NAME    train, validation or test (default: what its training evaluated on)\n"
    "  --threads N    default: one for each CPU this process may use\n"
    "  --json         one JSON object\n";

struct arguments {
    const char *model, *data, *part;
    int64_t threads;
    bool json, help;
};

/* --- the data --- */

static bool open_data(const struct arguments *a, const struct trained *trained,
                      struct dataset *dataset, struct error *err)
{
    struct stat info;
    const struct spec *spec = trained->spec;
    char *guess = alloc_printf("datasets/%s", spec->data.dataset);
    const char *folder = a->data ? a->data : guess;
    bool ok = a->data || !stat(folder, &info) ||
              fail(err, NOT_FOUND,
                   "there is no folder %s: say --data FOLDER with the files of \"%s\"", folder,
                   spec->data.dataset);
    const struct dataset_source source = {.folder = folder,
                                          .data = &spec->data,
                                          .seed = spec->seed,
                                          .vocabulary = trained->dataset.vocabulary};
    ok = ok && (dataset_open_from(&source, dataset, err) || error_prefix(err, "%s: ", folder));
    free(guess);
    return ok;
}

static bool check_face(const struct model_feature *wanted, const struct model_feature *found,
                       struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (!strcmp(wanted->name, found->name) && wanted->dtype == found->dtype &&
        shape_equal(&wanted->shape, &found->shape))
        return true;
    return fail(
        err, INVALID, "the model was trained on \"%s\" %s %s, the data has \"%s\" %s %s",
        wanted->name, dtype_name(wanted->dtype), shape_text(&wanted->shape, a, sizeof(a)),
        found->name, dtype_name(found->dtype), shape_text(&found->shape, b, sizeof(b)));
}

/* That examples can be fed to the model. */
static bool check_data(const struct trained *trained, const struct dataset *dataset,
                       struct error *err)
{
    const struct model_data *wanted = &trained->dataset.feeds.data;
    const struct model_data *found = &dataset->feeds.data;
    if (wanted->features_count != found->features_count)
        return fail(err, INVALID, "the model was trained on %d features, the data has %d",
                    wanted->features_count, found->features_count);
    for (int i = 0; i < wanted->features_count; i++) {
        if (!check_face(&wanted->features[i], &found->features[i], err))
            return false;
    }
    if (wanted->classes && found->classes > wanted->classes)
        return fail(err, INVALID, "the model knows %lld classes, the data has %lld",
                    (long long)wanted->classes, (long long)found->classes);
    return check_face(&wanted->target, &found->target, err);
}

/* The part asked for, and its name. */
static const struct dataset_part *find_part(const struct arguments *a,
                                            const struct dataset *dataset, const char **name,
                                            struct error *err)
{
    const struct {
        const char *name;
        const struct dataset_part *part;
    } parts[] = {{"train", &dataset->train},
                 {"validation", &dataset->validation},
                 {"test", &dataset->test}};
    const struct dataset_part *found = dataset_eval(dataset);
    struct str have = {0};
    bool known = !a->part;
    for (int i = 0; i < ARRAY_LEN(parts); i++) {
        if (a->part && !strcmp(a->part, parts[i].name)) {
            found = parts[i].part;
            known = true;
        }
        if (found == parts[i].part)
            *name = parts[i].name;
        if (parts[i].part->count)
            str_printf(&have, "%s%s", have.size ? ", " : "", parts[i].name);
    }
    if (!known)
        fail(err, INVALID, "--part is \"%s\", allowed: train, validation, test", a->part);
    else if (!found || !found->count)
        fail(err, INVALID, "the data has no %s part; it has: %s (--part)",
             a->part ? a->part : "validation or test", str_text(&have));
    str_release(&have);
    return known && found && found->count ? found : NULL;
}

/* --- what is told --- */

static void tell_json(const struct trained *trained, const char *part, int64_t count,
                      const double *values, double seconds)
{
    struct str out = {0};
    str_add(&out, "{\"model\": ");
    str_add_json(&out, trained->prefix, strlen(trained->prefix));
    str_printf(&out,
               ", \"step\": %lld, \"part\": \"%s\", \"examples\": %lld, \"seconds\": %.3f",
               (long long)trained->step, part, (long long)count, seconds);
    for (int i = 0; i < trained->model.metrics_count; i++) {
        str_add(&out, ", ");
        str_add_json(&out, trained->model.metrics[i].name,
                     strlen(trained->model.metrics[i].name));
        str_printf(&out, isfinite(values[i]) ? ": %.9g" : ": null", values[i]);
    }
    printf("%s}\n", str_text(&out));
    str_release(&out);
}

static void tell(const struct trained *trained, const char *part, int64_t count,
                 const double *values, double seconds)
{
    printf("%s after step %lld, %lld examples of the %s part, %.1f s:\n", trained->spec->name,
           (long long)trained->step, (long long)count, part, seconds);
    for (int i = 0; i < trained->model.metrics_count; i++)
        printf("  %-24s %.6g\n", trained->model.metrics[i].name, values[i]);
}

/* --- the whole --- */

static bool evaluate(const struct arguments *a, const struct trained *trained,
                     const struct dataset *dataset, struct error *err)
{
    const char *name = "";
    const struct dataset_part *part = find_part(a, dataset, &name, err);
    if (!part || !check_data(trained, dataset, err))
        return false;
    struct runner *runner = runner_of(trained->session, &trained->model);
    const struct runner_call *call = evaluate_prepare(runner, &trained->model, dataset, err);
    double values[SPEC_METRICS_MAX + 1];
    uint64_t start = clock_monotonic_us();
    bool ok =
        call && evaluate_examples(runner, call, &trained->model, dataset, part, values, err);
    runner_free(runner);
    if (!ok)
        return false;
    double seconds = (double)(clock_monotonic_us() - start) / 1e6;
    (a->json ? tell_json : tell)(trained, name, part->count, values, seconds);
    return true;
}

static bool run(const struct arguments *a, struct error *err)
{
    const struct session_options options = {.threads = arguments_set_threads(a->threads)};
    struct trained trained;
    struct dataset dataset;
    if (saved_model_is(a->model))
        return fail(
            err, INVALID,
            "%s is a SavedModel, which does not tell its loss and its metrics; what can "
            "be evaluated: a run's folder, a checkpoint",
            a->model);
    if (!trained_open(a->model, &options, &trained, err))
        return false;
    bool ok =
        !trained.is_keras ||
        fail(err, INVALID,
             "%s does not tell how it was trained; what can be evaluated: a run's folder, "
             "a checkpoint",
             a->model);
    ok = ok && open_data(a, &trained, &dataset, err);
    if (ok) {
        ok = evaluate(a, &trained, &dataset, err);
        dataset_close(&dataset);
    }
    trained_close(&trained);
    return ok;
}

int mode_evaluate(int argc, char **argv)
{
    struct arguments a = {0};
    int count;
    const struct argument rows[] = {{.name = "--data", .text = &a.data},
                                    {.name = "--part", .text = &a.part},
                                    {.name = "--threads", .number = &a.threads, .max = 4096},
                                    {.name = "--json", .flag = &a.json},
                                    {.name = "--help", .flag = &a.help}};
    struct error err;
    bool ok = arguments_read(argc, argv, rows, ARRAY_LEN(rows), &a.model, 1, &count, &err);
    if (ok && a.help) {
        fputs(usage, stdout);
        return 0;
    }
    if (ok && !count)
        ok = fail(&err, INVALID,
                  "which model?  The folder of a run, or a checkpoint (--help tells more)");
    if (ok && run(&a, &err))
        return 0;
    fprintf(stderr, "trainyard: %s\n", err.text);
    return arguments_exit_code(&err);
}
