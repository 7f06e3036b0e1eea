/* mode_train.c - arguments, signals and exit codes around a training run. */

#include "task/mode_train.h"

#include <errno.h>
#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/nearest.h"
#include "base/str.h"
#include "runtime/io/file.h"
#include "runtime/spec/spec.h"
#include "runtime/spec/spec_embed.h"
#include "runtime/train/train.h"
#include "task/libraries.h"
#include "task/show.h"
#include "task/train_cluster.h"

/* libgomp's; clang has no omp.h without a runtime of its own. */
void omp_set_num_threads(int threads);

static const char usage[] =
    "usage: trainyard train SPEC [options]\n"
    "\n"
    "Trains here and now, without a server.  SPEC is a file, or the name of a shipped "
    "example.\n"
    "\n"
    "  --data FOLDER         the dataset's files (default: datasets/NAME)\n"
    "  --out FOLDER          event file for TensorBoard, checkpoints (default: runs/NAME)\n"
    "  --checkpoints FOLDER  checkpoints (default: the out folder's checkpoints/)\n"
    "  --init PATH           weights to start from: .h5, .keras, .safetensors, a checkpoint\n"
    "  --steps N             in place of the spec's\n"
    "  --threads N           default: one for each CPU this process may use\n"
    "  --load-library FILE   a library with ops of its own\n"
    "  --resume              go on from the newest checkpoint\n"
    "  --json                one JSON object a line\n";

enum { EXIT_FINISHED = 0, EXIT_FAULT = 1, EXIT_USER = 2, EXIT_STOPPED = 3 };

struct arguments {
    const char *spec;
    const char *data, *out, *checkpoints, *library, *init, *certificate;
    int64_t steps, threads, epoch, attempt;
    bool resume, json, help;
    bool data_guessed;
    struct arena *arena;
};

/* --- arguments --- */

static bool number(const char *option, const char *text, int64_t max, int64_t *value,
                   struct error *err)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    if (errno || *end || end == text || *value < 0 || *value > max)
        return fail(err, INVALID, "%s is \"%s\", allowed: an integer from 0 to %lld", option,
                    text, (long long)max);
    return true;
}

static bool parse(int argc, char **argv, struct arguments *a, struct error *err)
{
    const struct {
        const char *name;
        const char **text;
        int64_t *value;
        int64_t max;
        bool *flag;
    } options[] = {
        {"--data", &a->data, NULL, 0, NULL},
        {"--out", &a->out, NULL, 0, NULL},
        {"--checkpoints", &a->checkpoints, NULL, 0, NULL},
        {"--init", &a->init, NULL, 0, NULL},
        {"--certificate", &a->certificate, NULL, 0, NULL},
        {"--load-library", &a->library, NULL, 0, NULL},
        {"--steps", NULL, &a->steps, INT64_C(1000000000000), NULL},
        {"--threads", NULL, &a->threads, 4096, NULL},
        {"--epoch", NULL, &a->epoch, INT64_MAX, NULL},
        {"--attempt", NULL, &a->attempt, INT64_MAX, NULL},
        {"--resume", NULL, NULL, 0, &a->resume},
        {"--json", NULL, NULL, 0, &a->json},
        {"--help", NULL, NULL, 0, &a->help},
    };
    for (int i = 0; i < argc; i++) {
        int o = 0;
        while (o < ARRAY_LEN(options) && strcmp(options[o].name, argv[i]))
            o++;
        if (o == ARRAY_LEN(options)) {
            const char *names[ARRAY_LEN(options) + 1] = {0};
            for (int n = 0; n < ARRAY_LEN(options); n++)
                names[n] = options[n].name;
            const char *nearest = nearest_name(argv[i], names);
            if (argv[i][0] == '-' || a->spec)
                return fail(err, INVALID,
                            "unknown argument \"%s\"%s%s%s (--help tells what there is)",
                            argv[i], nearest ? "; did you mean " : "", nearest ? nearest : "",
                            nearest ? "?" : "");
            a->spec = argv[i];
        } else if (options[o].flag) {
            *options[o].flag = true;
        } else if (i + 1 == argc) {
            return fail(err, INVALID, "%s wants a value", argv[i]);
        } else if (options[o].text) {
            *options[o].text = argv[++i];
        } else if (!number(argv[i], argv[i + 1], options[o].max, options[o].value, err)) {
            return false;
        } else {
            i++;
        }
    }
    return a->spec || a->help ||
           fail(err, INVALID, "which spec?  A file, or an example's name");
}

/* --- the spec: a file, or an example --- */

static bool is_file(const char *path)
{
    struct stat info;
    return !stat(path, &info) && !S_ISDIR(info.st_mode);
}

/* Puts the files that the spec names into its text, which else stays as it is. */
static bool embed(struct str *text, const char *path, struct error *err)
{
    json_t *spec = json_loadb(str_text(text), text->size, JSON_REJECT_DUPLICATES, NULL);
    bool changed = false, ok = !spec || spec_embed(spec, path, &changed, err);
    char *with = ok && changed ? json_dumps(spec, JSON_COMPACT) : NULL;
    if (with) {
        str_clear(text);
        str_add(text, with);
    }
    free(with);
    json_decref(spec);
    return ok;
}

static const struct spec *read_spec(const char *name, struct arena *arena, struct error *err)
{
    struct str text = {0};
    const struct spec_example *example = is_file(name) ? NULL : spec_example_find(name);
    if (example) {
        str_add_bytes(&text, example->json, example->size);
    } else if (!file_read(name, LIMIT_HTTP_BODY_BYTES, &text, err)) {
        str_release(&text);
        if (err->code != NOT_FOUND || strchr(name, '/'))
            return NULL;
        struct str all = {0};
        for (int i = 0; i < spec_example_count(); i++)
            str_printf(&all, "%s%s", i ? ", " : "", spec_example_at(i)->name);
        fail(err, NOT_FOUND,
             "there is no file \"%s\", and no example of that name (examples: %s)", name,
             str_text(&all));
        str_release(&all);
        return NULL;
    }
    const struct spec *spec = NULL;
    if (embed(&text, name, err))
        spec = spec_parse_training(arena, str_text(&text), text.size, err);
    if (!spec)
        error_prefix(err, "%s: ", name);
    str_release(&text);
    return spec;
}

/* --- folders --- */

/* mkdir -p */
static bool make_folder(const char *path, struct error *err)
{
    char *part = alloc_text(path);
    bool ok = true;
    for (char *c = part + 1; ok; c++) {
        char was = *c;
        if (was && was != '/')
            continue;
        *c = 0;
        ok = !mkdir(part, 0777) || errno == EEXIST || file_error(err, "create folder", part);
        *c = was;
        if (!was)
            break;
    }
    free(part);
    return ok;
}

static bool set_folders(struct arguments *a, const struct spec *spec, struct arena *arena,
                        struct error *err)
{
    a->data_guessed = !a->data;
    if (!a->data)
        a->data = arena_printf(arena, "datasets/%s", spec->data.dataset);
    if (!a->out)
        a->out = arena_printf(arena, "runs/%s", spec->name);
    if (!a->checkpoints)
        a->checkpoints = arena_printf(arena, "%s/checkpoints", a->out);
    return (make_folder(a->out, err) && make_folder(a->checkpoints, err)) ||
           error_prefix(err, "no place for what is made (--out FOLDER names another): ");
}

static int cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set))
        return 1;
    return CPU_COUNT(&set);
}

/* --- stopping --- */

static volatile sig_atomic_t stop_asked;
static struct train *volatile running;

/* The first signal asks politely; a second one ends the process. */
static void on_signal(int signal)
{
    (void)signal;
    stop_asked = 1;
    struct train *train = running;
    if (train)
        train_stop(train);
}

static void watch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND | SA_RESTART};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

/* --- the run --- */

static int exit_code(const struct error *err)
{
    switch (err->code) {
    case INTERNAL:
    case UNAVAILABLE:
    case ABORTED:
    case UNKNOWN:
        return EXIT_FAULT;
    default:
        return EXIT_USER;
    }
}

/* Leaves the reason where the agent finds it; without a folder for it, stderr has to do. */
static void write_error_file(const char *out, const struct error *err)
{
    struct stat info;
    if (!out || stat(out, &info))
        return;
    struct str json = {0};
    struct error ignored; /* the reason is on stderr too */
    char *path = alloc_printf("%s/error.json", out);
    str_printf(&json, "{\"code\": \"%s\", \"text\": ", error_code_name(err->code));
    str_add_json(&json, err->text, strlen(err->text));
    str_add(&json, ", \"pointer\": ");
    str_add_json(&json, err->pointer, strlen(err->pointer));
    str_add(&json, "}\n");
    if (!file_write(path, json.data, json.size, &ignored))
        fprintf(stderr, "trainyard: %s\n", ignored.text);
    str_release(&json);
    free(path);
}

/* Where a dataset comes from, when nobody said where it is. */
static bool add_hint(const struct arguments *a, const struct spec *spec, struct error *err)
{
    struct stat info;
    if (err->code != NOT_FOUND || !a->data_guessed || !stat(a->data, &info))
        return false;
    bool digits = !strcmp(spec->data.dataset, "digits");
    return fail(err, NOT_FOUND,
                "dataset \"%s\": there is no folder %s: say --data FOLDER with its files%s",
                spec->data.dataset, a->data,
                digits ? ", or draw them: trainyard dataset make digits datasets/digits" : "");
}

/* A person who forgets --resume should know what becomes of the run before. */
static void tell_earlier_run(const struct arguments *a, struct show *show)
{
    struct stat info;
    char *path = alloc_printf("%s/checkpoint", a->checkpoints);
    if (!a->resume && !a->epoch && !stat(path, &info))
        show_line(
            show,
            "%s has checkpoints of an earlier run, which this one replaces (--resume goes "
            "on with it, --out FOLDER leaves it alone)",
            a->checkpoints);
    free(path);
}

/* Trains to the end; sets `*code` on success. */
static bool run(struct arguments *a, const struct spec *spec, struct train_cluster *tasks,
                struct show *show, int *code, struct error *err)
{
    const struct runner_cluster *cluster = tasks ? train_cluster_tasks(tasks, err) : NULL;
    if ((tasks && !cluster) || !set_folders(a, spec, a->arena, err))
        return false;
    const struct train_options options = {.spec = spec,
                                          .data = a->data,
                                          .out = a->out,
                                          .checkpoints = a->checkpoints,
                                          .init = a->init,
                                          .steps = a->steps,
                                          .threads = (int)a->threads,
                                          .resume = a->resume,
                                          .epoch = a->epoch,
                                          .cluster = cluster,
                                          .wait_for_room = a->epoch > 0};
    struct train *train = train_open(&options, err);
    if (!train)
        return add_hint(a, spec, err);
    running = train;
    if (stop_asked)
        train_stop(train);
    tell_earlier_run(a, show);
    show_start(show, spec, train_facts(train));
    struct train_report report = {0};
    bool ok = true;
    do {
        ok = train_next(train, &report, err);
        if (ok)
            show_report(show, &report);
    } while (ok && report.what != TRAIN_ENDED);
    *code = report.end == TRAIN_STOPPED ? EXIT_STOPPED : EXIT_FINISHED;
    running = NULL;
    train_close(train);
    return ok;
}

/* The same as one of several tasks. */
static bool run_among(struct arguments *a, const struct spec *spec, struct show *show,
                      int *code, struct error *err)
{
    const struct train_cluster_options options = {
        .spec = spec,
        .spec_path = a->spec,
        .certificate = a->certificate,
        .threads = (int)a->threads,
        .stop = &stop_asked,
    };
    struct train_cluster *tasks = train_cluster_start(&options, err);
    bool ok = tasks;
    if (tasks && train_cluster_is_chief(tasks))
        ok = run(a, spec, tasks, show, code, err);
    else if (tasks)
        *code = train_cluster_serve(tasks) ? EXIT_FINISHED : EXIT_STOPPED;
    train_cluster_end(tasks);
    return ok;
}

static int train(struct arguments *a, struct arena *arena)
{
    struct show show;
    struct error err;
    int code = EXIT_FAULT;
    const struct spec *spec = read_spec(a->spec, arena, &err);
    show_init(&show, spec, a->json);
    if (!a->threads)
        a->threads = cpus();
    omp_set_num_threads((int)a->threads);
    bool ready = spec && (!a->library || libraries_load(a->library, &err));
    a->arena = arena;
    if (!ready || !(spec_tasks(spec) > 1 ? run_among(a, spec, &show, &code, &err)
                                         : run(a, spec, NULL, &show, &code, &err))) {
        show_error(&show, &err);
        write_error_file(a->out, &err);
        return exit_code(&err);
    }
    if (!a->data) /* it served others */
        return code;
    if (code == EXIT_FINISHED && !a->epoch && !a->json)
        show_line(&show, "in %s: checkpoints, and events for `tensorboard --logdir %s`", a->out,
                  a->out);
    if (code == EXIT_STOPPED && !a->epoch)
        show_line(&show, "go on with: trainyard train %s --data %s --out %s --resume", a->spec,
                  a->data, a->out);
    return code;
}

int mode_train(int argc, char **argv)
{
    struct arguments arguments = {0};
    struct error err;
    if (!parse(argc, argv, &arguments, &err)) {
        fprintf(stderr, "trainyard: %s\n", err.text);
        return EXIT_USER;
    }
    if (arguments.help) {
        fputs(usage, stdout);
        return EXIT_FINISHED;
    }
    watch_signals();
    struct arena *arena = arena_new();
    int code = train(&arguments, arena);
    arena_free(arena);
    return code;
}
