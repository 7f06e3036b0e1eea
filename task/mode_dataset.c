/* mode_dataset.c - opens a folder of data and tells what is in it, as a table or as JSON. */

#include "task/mode_dataset.h"

#include <jansson.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/dataset/dataset.h"
#include "runtime/dataset/format.h"
#include "runtime/io/file.h"
#include "runtime/spec/spec.h"

static const char usage[] =
    "usage: trainyard-task dataset FOLDER [--spec FILE] [--words N] [--json]\n"
    "\n"
    "Shows the columns of the data in FOLDER, how many examples its parts have, and the words\n"
    "of its vocabularies.\n"
    "\n"
    "  --spec FILE  a job spec, whose data section says how to read it\n"
    "  --words N    so many words of each vocabulary (default 10)\n"
    "  --json       all of it as one JSON object\n";

enum { EXIT_SHOWN = 0, EXIT_USER = 2, WORDS_MAX = 1000000 };

struct arguments {
    const char *folder, *spec;
    int64_t words;
    bool json, help;
};

static bool parse(int argc, char **argv, struct arguments *a, struct error *err)
{
    for (int i = 0; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        char *end;
        if (!strcmp(argv[i], "--help")) {
            a->help = true;
        } else if (!strcmp(argv[i], "--json")) {
            a->json = true;
        } else if (!strcmp(argv[i], "--spec") && value) {
            a->spec = argv[++i];
        } else if (!strcmp(argv[i], "--words") && value) {
            a->words = strtoll(argv[++i], &end, 10);
            if (!*value || *end || a->words < 0 || a->words > WORDS_MAX)
                return fail(err, INVALID, "--words is \"%.40s\", allowed: an integer from 0",
                            value);
        } else if (argv[i][0] == '-' || a->folder) {
            return fail(err, INVALID, "what is \"%.60s\"?", argv[i]);
        } else {
            a->folder = argv[i];
        }
    }
    return a->folder || a->help || fail(err, INVALID, "name the folder of the data");
}

/* The data section of a spec; NULL without `err` set when there is no spec. */
static bool read_spec(const char *path, struct arena *arena, const struct spec **spec,
                      struct error *err)
{
    struct str text = {0};
    *spec = NULL;
    if (!path)
        return true;
    const struct spec_example *example = spec_example_find(path);
    if (example)
        str_add_bytes(&text, example->json, example->size);
    bool ok = example || file_read(path, LIMIT_HTTP_BODY_BYTES, &text, err);
    if (ok)
        *spec = spec_parse_training(arena, str_text(&text), text.size, err);
    str_release(&text);
    return ok && *spec;
}

/* --- as JSON --- */

static const char *role_name(enum dataset_role role)
{
    static const char *const names[] = {[DATASET_FEATURE] = "feature",
                                        [DATASET_TARGET] = "target",
                                        [DATASET_UNUSED] = "unused",
                                        [DATASET_WEIGHT] = "weight"};
    return names[role];
}

static json_t *column_json(const struct dataset_column *column, int64_t words)
{
    json_t *shape = json_array();
    for (int i = 0; i < column->shape.rank; i++)
        json_array_append_new(shape, json_integer(column->shape.dims[i]));
    json_t *json = json_pack("{s:s, s:s, s:s, s:o, s:I}", "name", column->name, "role",
                             role_name(column->role), "dtype", dtype_name(column->dtype),
                             "shape", shape, "classes", (json_int_t)column->classes);
    if (json && column->vocabulary && words) {
        json_t *list = json_array();
        for (int64_t i = 0; i < column->classes && i < words; i++) {
            const char *word = column->vocabulary[i];
            json_t *text = json_string(word); /* NULL when it is no UTF-8 */
            json_array_append_new(list, text ? text : json_string("\xef\xbf\xbd"));
        }
        json_object_set_new(json, "vocabulary", list);
    }
    return json;
}

static json_t *dataset_json(const struct dataset *dataset, int64_t words)
{
    json_t *columns = json_array();
    for (int i = 0; i < dataset->columns_count; i++)
        json_array_append_new(columns, column_json(&dataset->columns[i], words));
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:o}", "format", dataset->format->name, "train",
                     (json_int_t)dataset->train.count, "validation",
                     (json_int_t)dataset->validation.count, "test",
                     (json_int_t)dataset->test.count, "skipped", (json_int_t)dataset->skipped,
                     "columns", columns);
}

/* --- as a table --- */

static void show(const struct dataset *dataset, int64_t words)
{
    char shape[SHAPE_TEXT_BYTES];
    printf("%s: %lld examples to train on, %lld for validation, %lld to test on\n",
           dataset->format->name, (long long)dataset->train.count,
           (long long)dataset->validation.count, (long long)dataset->test.count);
    if (dataset->skipped)
        printf("%lld damaged records were skipped\n", (long long)dataset->skipped);
    for (int i = 0; i < dataset->columns_count; i++) {
        const struct dataset_column *column = &dataset->columns[i];
        printf("  %-24s %-8s %-8s %-14s", column->name, role_name(column->role),
               dtype_name(column->dtype), shape_text(&column->shape, shape, sizeof(shape)));
        if (column->classes)
            printf(" %lld classes", (long long)column->classes);
        if (column->vocabulary && words) {
            int64_t w = 0;
            for (; w < column->classes && w < words; w++)
                printf("%s%s", w ? ", " : ": ", column->vocabulary[w]);
            if (w < column->classes)
                printf(", ...");
        }
        putchar('\n');
    }
}

/* --- the mode --- */

static bool run(const struct arguments *a, struct error *err)
{
    struct arena *arena = arena_new();
    const struct spec *spec;
    struct dataset dataset;
    bool ok = read_spec(a->spec, arena, &spec, err) &&
              dataset_open(a->folder, spec ? &spec->data : NULL, spec ? spec->seed : 0,
                           &dataset, err);
    if (ok && a->json) {
        json_t *json = dataset_json(&dataset, a->words);
        char *text = json_dumps(json, JSON_INDENT(1));
        puts(text);
        free(text);
        json_decref(json);
    } else if (ok) {
        show(&dataset, a->words);
    }
    if (ok)
        dataset_close(&dataset);
    arena_free(arena);
    return ok;
}

int mode_dataset(int argc, char **argv)
{
    struct arguments a = {.words = 10};
    struct error err = {0};
    if (!parse(argc, argv, &a, &err)) {
        fprintf(stderr, "trainyard: %s\n%s", err.text, usage);
        return EXIT_USER;
    }
    if (a.help) {
        fputs(usage, stdout);
        return EXIT_SHOWN;
    }
    if (run(&a, &err))
        return EXIT_SHOWN;
    if (a.json) {
        json_t *json = json_pack("{s:{s:i, s:s, s:s}}", "error", "code", (int)err.code, "text",
                                 err.text, "pointer", err.pointer);
        char *text = json ? json_dumps(json, 0) : NULL;
        puts(text ? text : "{\"error\": {}}");
        free(text);
        json_decref(json);
    } else {
        fprintf(stderr, "trainyard: %s%s%s\n", err.pointer, *err.pointer ? ": " : "", err.text);
    }
    return EXIT_USER;
}
