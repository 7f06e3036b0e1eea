/* mode_trace.c - from event file to trace viewer. */

#include "task/mode_trace.h"

#include <dirent.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "proto/tfevent.h"
#include "runtime/chrome.h"
#include "runtime/io/file.h"
#include "runtime/io/record_file.h"

static const char usage[] =
    "usage: trainyard trace EVENTS [options]\n"
    "\n"
    "Writes the traced steps of an event file as a trace that chrome://tracing and\n"
    "ui.perfetto.dev open.  EVENTS is the file, or the folder it is in.  A job traces steps\n"
    "when its spec says {\"trace\": {\"every_steps\": N}}.\n"
    "\n"
    "  --out FILE   default: standard output\n"
    "  --step N     that step alone\n";

enum { EXIT_WRITTEN = 0, EXIT_FAULT = 1, EXIT_USER = 2 };

struct arguments {
    const char *events, *out, *step;
    bool help;
};

static bool parse(int argc, char **argv, struct arguments *a, struct error *err)
{
    const struct {
        const char *name;
        const char **text;
    } options[] = {{"--out", &a->out}, {"--step", &a->step}};
    for (int i = 0; i < argc; i++) {
        int o = 0;
        while (o < ARRAY_LEN(options) && strcmp(options[o].name, argv[i]))
            o++;
        if (!strcmp(argv[i], "--help"))
            a->help = true;
        else if (o < ARRAY_LEN(options) && i + 1 < argc)
            *options[o].text = argv[++i];
        else if (argv[i][0] != '-' && !a->events)
            a->events = argv[i];
        else
            return fail(err, INVALID, "unknown argument \"%s\" (--help tells what there is)",
                        argv[i]);
    }
    return a->events || a->help || fail(err, INVALID, "which event file?  A file or a folder");
}

/* The newest event file of a folder, by name; owned by the caller.  A file is itself. */
static char *find_file(const char *path, struct error *err)
{
    struct stat info;
    if (stat(path, &info)) {
        file_error(err, "open", path);
        return NULL;
    }
    if (!S_ISDIR(info.st_mode))
        return alloc_text(path);
    DIR *folder = opendir(path);
    char *best = NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (!strstr(entry->d_name, ".tfevents.") ||
            (best && strcmp(strrchr(best, '/') + 1, entry->d_name) >= 0))
            continue;
        free(best);
        best = alloc_printf("%s/%s", path, entry->d_name);
    }
    if (folder)
        closedir(folder);
    return best
               ? best
               : fail_null(err, NOT_FOUND, "there is no event file (*.tfevents.*) in %s", path);
}

/* Appends the traces of the file; `*steps` counts them. */
static bool convert(const struct arguments *a, const char *path, struct str *out, int *steps,
                    struct error *err)
{
    struct record_file *file = record_file_open(path, STREAM_PLAIN, err);
    struct arena *arena = arena_new();
    const void *data;
    size_t size;
    bool ok = file, any = false;
    while (ok && record_file_next(file, &data, &size, err)) {
        struct tfevent event;
        arena_clear(arena);
        ok = tfevent_parse(data, size, arena, &event, err);
        if (!ok || event.kind != TFEVENT_RUN_METADATA)
            continue;
        if (a->step && strtoll(a->step, NULL, 10) != event.step)
            continue;
        ok = chrome_add(event.bytes, event.size, event.text, out, &any, err);
        ++*steps;
    }
    if (ok && err->code != OUT_OF_RANGE)
        ok = false; /* the file is damaged */
    arena_free(arena);
    record_file_close(file);
    return ok;
}

static bool run(const struct arguments *a, struct error *err)
{
    struct str out = {0};
    int steps = 0;
    char *path = find_file(a->events, err);
    str_add(&out, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
    bool ok = path && convert(a, path, &out, &steps, err);
    str_add(&out, "\n]}\n");
    if (ok && !steps)
        ok = a->step ? fail(err, NOT_FOUND, "%s has no trace of step %s", path, a->step)
                     : fail(err, NOT_FOUND, "%s has no traced steps", path);
    if (ok && a->out)
        ok = file_write(a->out, out.data, out.size, err);
    else if (ok)
        fwrite(out.data, 1, out.size, stdout);
    if (ok && a->out)
        printf("%d traced step%s of %s in %s\n", steps, steps == 1 ? "" : "s", path, a->out);
    free(path);
    str_release(&out);
    return ok;
}

int mode_trace(int argc, char **argv)
{
    struct arguments arguments = {0};
    struct error err;
    if (parse(argc, argv, &arguments, &err)) {
        if (arguments.help) {
            fputs(usage, stdout);
            return EXIT_WRITTEN;
        }
        if (run(&arguments, &err))
            return EXIT_WRITTEN;
    }
    fprintf(stderr, "trainyard: %s\n", err.text);
    return err.code == INTERNAL ? EXIT_FAULT : EXIT_USER;
}
