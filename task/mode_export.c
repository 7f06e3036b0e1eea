/* mode_export.c - trainyard export: a trained model in a format that others read. */

#include "task/mode_export.h"

#include <sys/stat.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/str.h"
#include "runtime/spec/spec.h"
#include "runtime/train/trained.h"
#include "task/arguments.h"
#include "task/export.h"

static const char usage[] =
    "usage: trainyard export MODEL OUT [options]\n"
    "\n"
    "Writes a trained model for other programs.  MODEL is the folder of a run (its newest\n"
    "checkpoint) or a checkpoint (FOLDER/model.ckpt-500); OUT is what is made.\n"
    "\n"
    "  --format NAME  one of those below (default: by the ending of OUT)\n"
    "  --force        replace OUT if it is there\n"
    "\n"
    "formats:\n";

#define EXPORT_ROW(name) &export_##name,
static const struct export_format *const formats[] = {EXPORT_FORMATS(EXPORT_ROW)};

static void print_usage(void)
{
    fputs(usage, stdout);
    for (int i = 0; i < ARRAY_LEN(formats); i++)
        printf("  %-14s %s%s%s%s\n", formats[i]->name, formats[i]->summary,
               formats[i]->ending ? " (" : "", formats[i]->ending ? formats[i]->ending : "",
               formats[i]->ending ? ")" : "");
}

/* --- which format --- */

static bool ends_with(const char *text, const char *ending)
{
    size_t size = strlen(text), end = strlen(ending);
    return size > end && !strcmp(text + size - end, ending);
}

static const struct export_format *find_format(const char *name, const char *out,
                                               struct error *err)
{
    const char *names[ARRAY_LEN(formats) + 1] = {0};
    struct str all = {0};
    for (int i = 0; i < ARRAY_LEN(formats); i++) {
        const struct export_format *format = formats[i];
        if (name ? !strcmp(format->name, name)
                 : format->ending && ends_with(out, format->ending)) {
            str_release(&all);
            return format;
        }
        names[i] = format->name;
        str_printf(&all, "%s%s", i ? ", " : "", format->name);
    }
    const char *nearest = name ? nearest_name(name, names) : NULL;
    if (name)
        fail(err, INVALID, "--format is \"%s\"%s%s%s; formats: %s", name,
             nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "",
             str_text(&all));
    else
        fail(err, INVALID,
             "the ending of \"%s\" does not tell the format: say --format, one "
             "of: %s",
             out, str_text(&all));
    str_release(&all);
    return NULL;
}

/* --- the whole --- */

static bool run(const char *model, const char *out, const char *name, bool force,
                struct error *err)
{
    struct stat info;
    struct trained trained;
    const struct export_format *format = find_format(name, out, err);
    if (!format)
        return false;
    if (!force && !stat(out, &info))
        return fail(err, EXISTS, "%s is there already (--force replaces it)", out);
    if (!trained_open_plain(model, &trained, err))
        return false;
    struct str notes = {0};
    bool ok = format->write(&trained, out, &notes, err);
    if (ok)
        printf("%s: %s of step %lld of %s\n%s", out, format->name, (long long)trained.step,
               trained.spec->name, str_text(&notes));
    str_release(&notes);
    trained_close(&trained);
    return ok;
}

int mode_export(int argc, char **argv)
{
    const char *format = NULL, *words[2];
    bool force = false, help = false;
    int count;
    const struct argument rows[] = {{.name = "--format", .text = &format},
                                    {.name = "--force", .flag = &force},
                                    {.name = "--help", .flag = &help}};
    struct error err;
    bool ok = arguments_read(argc, argv, rows, ARRAY_LEN(rows), words, ARRAY_LEN(words), &count,
                             &err);
    if (ok && help) {
        print_usage();
        return 0;
    }
    if (ok && count < ARRAY_LEN(words))
        ok = fail(&err, INVALID, "%s (--help tells more)",
                  count ? "what is to be made?  A file or folder after MODEL"
                        : "which model?  The folder of a run, or a checkpoint");
    if (ok && run(words[0], words[1], format, force, &err))
        return 0;
    fprintf(stderr, "trainyard: %s\n", err.text);
    return arguments_exit_code(&err);
}
