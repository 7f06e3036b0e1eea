/* mode_graph.c - what the passes make of a graph, as tables or as JSON. */

#include "task/mode_graph.h"

#include <jansson.h>
#include <sched.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/describe.h"
#include "runtime/graph.h"
#include "runtime/graph_file.h"
#include "runtime/optimise.h"
#include "task/libraries.h"

static const char usage[] =
    "usage: trainyard graph show FILE [options]\n"
    "\n"
    "Shows a graph before and after the passes of the optimiser, and which pass removed or\n"
    "added what.  FILE is a GraphDef, a MetaGraphDef (model.meta) or a SavedModel (or its\n"
    "folder), binary or as text (.pbtxt).\n"
    "\n"
    "  --feed NAME          fed in a run; more than once for more (default: all placeholders)\n"
    "  --fetch NAME         fetched in a run (default: whatever nobody reads)\n"
    "  --tags A,B           the meta graph of a SavedModel that has more than one\n"
    "  --batch N            for first dimensions that feeds leave open\n"
    "  --without PASS,...   passes to leave out\n"
    "  --memory             the tensors that are alive at the peak\n"
    "  --nodes              the nodes that are left, with their inputs\n"
    "  --load-library FILE  a library with ops of its own\n"
    "  --json               all of it as one JSON object\n";

enum { NAMES_MAX = 256, EXIT_SHOWN = 0, EXIT_USER = 2 };

struct arguments {
    const char *file, *tags;
    const char *feeds[NAMES_MAX], *fetches[NAMES_MAX];
    struct describe_options options;
    bool memory, nodes, json, help;
};

/* --- arguments --- */

static bool add_name(const char **names, int *count, const char *name, struct error *err)
{
    if (*count == NAMES_MAX)
        return fail(err, INVALID, "more than %d names", NAMES_MAX);
    names[(*count)++] = name;
    return true;
}

static bool set_option(struct arguments *a, const char *option, const char *value,
                       struct error *err)
{
    char *end;
    if (!strcmp(option, "--feed"))
        return add_name(a->feeds, &a->options.feeds_count, value, err);
    if (!strcmp(option, "--fetch"))
        return add_name(a->fetches, &a->options.fetches_count, value, err);
    if (!strcmp(option, "--tags")) {
        a->tags = value;
        return true;
    }
    if (!strcmp(option, "--load-library"))
        return libraries_load(value, err);
    if (!strcmp(option, "--batch")) {
        a->options.batch = strtoll(value, &end, 10);
        return (*value && !*end && a->options.batch > 0) ||
               fail(err, INVALID, "--batch is \"%s\", allowed: an integer from 1", value);
    }
    if (!strcmp(option, "--without")) {
        struct str names = {0};
        for (int i = 0; i < OPTIMISE_PASSES; i++)
            str_printf(&names, "%s%s", i ? ", " : "", optimise_name(i));
        bool ok = optimise_parse(value, &a->options.passes_off) ||
                  fail(err, INVALID, "--without is \"%s\", the passes are: %s", value,
                       str_text(&names));
        str_release(&names);
        return ok;
    }
    return fail(err, INVALID, "unknown argument \"%s\" (--help tells what there is)", option);
}

static bool parse(int argc, char **argv, struct arguments *a, struct error *err)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"--memory", &a->memory},
                 {"--nodes", &a->nodes},
                 {"--json", &a->json},
                 {"--help", &a->help}};
    for (int i = 0; i < argc; i++) {
        int f = 0;
        while (f < ARRAY_LEN(flags) && strcmp(flags[f].name, argv[i]))
            f++;
        if (f < ARRAY_LEN(flags))
            *flags[f].flag = true;
        else if (argv[i][0] != '-' && !a->file)
            a->file = argv[i];
        else if (i + 1 == argc && argv[i][0] == '-')
            return fail(err, INVALID, "%s wants a value, or is not known (--help)", argv[i]);
        else if (!set_option(a, argv[i], argv[i + 1 < argc ? i + 1 : i], err))
            return false;
        else
            i++;
    }
    a->options.feeds = a->feeds;
    a->options.fetches = a->fetches;
    return a->file || a->help ||
           fail(err, INVALID, "which graph?  A file with a GraphDef or a model");
}

/* --- tables --- */

static const char *text(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    return value ? value : "";
}

static long long number(const json_t *object, const char *name)
{
    return (long long)json_integer_value(json_object_get(object, name));
}

static void print_nodes(const json_t *list, char sign)
{
    enum { SHOWN = 12 };
    size_t count = json_array_size(list);
    for (size_t i = 0; i < count && i < SHOWN; i++) {
        const json_t *node = json_array_get(list, i),
                     *parts = json_object_get(node, "stands_for");
        printf("      %c %s (%s)", sign, text(node, "name"), text(node, "op"));
        for (size_t k = 0; k < json_array_size(parts); k++)
            printf("%s%s", k ? ", " : " for ", json_string_value(json_array_get(parts, k)));
        printf("\n");
    }
    if (count > SHOWN)
        printf("      %c ... and %zu more (--json lists all)\n", sign, count - SHOWN);
}

static void print_passes(const json_t *report)
{
    const json_t *pass;
    size_t i;
    long long before = number(report, "nodes");
    printf("%lld nodes in the file\n", before);
    json_array_foreach(json_object_get(report, "passes"), i, pass)
    {
        long long now = number(pass, "nodes");
        const json_t *removed = json_object_get(pass, "removed");
        const json_t *added = json_object_get(pass, "added");
        printf("  %-11s %6lld nodes  %+lld  %s\n", text(pass, "pass"), now, now - before,
               text(pass, "summary"));
        print_nodes(removed, '-');
        print_nodes(added, '+');
        before = now;
    }
    printf("%lld nodes run, of %lld in the file\n", before, number(report, "nodes"));
}

static void print_kept(const json_t *report)
{
    const json_t *node;
    size_t i;
    printf("what is left:\n");
    json_array_foreach(json_object_get(report, "kept"), i, node)
    {
        const json_t *inputs = json_object_get(node, "inputs");
        printf("  %s = %s(", text(node, "name"), text(node, "op"));
        for (size_t k = 0; k < json_array_size(inputs); k++)
            printf("%s%s", k ? ", " : "", json_string_value(json_array_get(inputs, k)));
        printf(")\n");
    }
}

static void print_memory(const json_t *report)
{
    const json_t *memory = json_object_get(report, "memory"), *tensor;
    size_t i;
    printf("memory: %lld bytes at the peak, during %s; %lld of variables, %lld of constants, "
           "%lld of feeds\n",
           number(memory, "peak_bytes"), text(memory, "at"), number(memory, "variable_bytes"),
           number(memory, "constant_bytes"), number(memory, "feed_bytes"));
    if (number(memory, "unknown"))
        printf("  %lld tensors have sizes that only a run shows (--batch may tell)\n",
               number(memory, "unknown"));
    json_array_foreach(json_object_get(memory, "tensors"), i, tensor)
        printf("  %12lld  %s %s%s (%s)\n", number(tensor, "bytes"), text(tensor, "name"),
               text(tensor, "dtype"), text(tensor, "shape"), text(tensor, "op"));
}

static bool show(const struct arguments *a, const struct str *report, struct error *err)
{
    if (a->json) {
        puts(str_text(report));
        return true;
    }
    json_error_t why;
    json_t *json = json_loads(str_text(report), 0, &why);
    if (!json)
        return fail(err, INTERNAL, "the report is no JSON: %s", why.text);
    print_passes(json);
    if (a->nodes)
        print_kept(json);
    if (a->memory)
        print_memory(json);
    json_decref(json);
    return true;
}

/* --- the whole --- */

static bool run(const struct arguments *a, struct error *err)
{
    struct str what = {0}, report = {0};
    struct graph *graph = graph_new();
    bool ok = graph_file_read(a->file, a->tags, graph, &what, err) &&
              describe_graph(graph, &a->options, &report, err);
    if (ok && !a->json)
        printf("%s: %s\n", a->file, str_text(&what));
    ok = ok && show(a, &report, err);
    graph_free(graph);
    str_release(&what);
    str_release(&report);
    return ok;
}

int mode_graph(int argc, char **argv)
{
    static struct arguments arguments = {.options = {.threads = 1}};
    struct error err;
    if (argc < 1 || strcmp(argv[0], "show") != 0) {
        fputs(usage, argc && !strcmp(argv[0], "--help") ? stdout : stderr);
        return argc && !strcmp(argv[0], "--help") ? EXIT_SHOWN : EXIT_USER;
    }
    if (parse(argc - 1, argv + 1, &arguments, &err)) {
        if (arguments.help) {
            fputs(usage, stdout);
            return EXIT_SHOWN;
        }
        if (run(&arguments, &err))
            return EXIT_SHOWN;
    }
    fprintf(stderr, "trainyard: %s\n", err.text);
    return err.code == INTERNAL ? 1 : EXIT_USER;
}
