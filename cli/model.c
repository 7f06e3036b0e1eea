/* model.c - trainyard model: what jobs have learned, and its files. */

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "cli/change.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/options.h"
#include "cli/table.h"
#include "server/url.h"

struct wish {
    const char *folder; /* of the server */
    const char *job;
    const char *into;
    int64_t step; /* -1: the newest */
    bool json;
};

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static int64_t number_of(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

/* GET /api/v1/jobs/JOB/checkpoints and what follows; owned. */
static json_t *ask(struct client *client, const struct wish *wish, const char *rest,
                   struct error *err)
{
    struct str path = {0};
    str_add(&path, "/api/v1/jobs/");
    url_encode(&path, wish->job);
    str_printf(&path, "/checkpoints%s", rest);
    json_t *answer = client_json(client, "GET", str_text(&path), NULL, NULL, err);
    str_release(&path);
    return answer;
}

/* --- list --- */

/* The last values that tell how good it is: "val_accuracy 0.981". */
static void add_values(struct table *table, const json_t *last)
{
    static const char *const names[] = {"val_loss", "val_accuracy", "loss"};
    struct str text = {0};
    for (int i = 0; i < ARRAY_LEN(names) && (i < 2 || !text.size); i++) {
        const json_t *value = json_object_get(last, names[i]);
        if (json_is_number(value))
            str_printf(&text, "%s%s %.4g", text.size ? ", " : "", names[i],
                       json_number_value(value));
    }
    table_cell(table, "%s", text.size ? str_text(&text) : "-");
    str_release(&text);
}

/* A job by what tells it from others, and its checkpoints; NULL when it has none. */
static json_t *read_model(struct client *client, const struct wish *wish, json_t *job,
                          struct error *err)
{
    static const char *const kept[] = {"id", "number", "name", "project", "state", "last"};
    struct wish one = *wish;
    one.job = text_of(job, "id");
    json_t *found = ask(client, &one, "", err);
    json_t *items = json_object_get(found, "items"), *model = NULL;
    if (json_array_size(items)) {
        model = json_object();
        for (int i = 0; i < ARRAY_LEN(kept); i++)
            json_object_set(model, kept[i], json_object_get(job, kept[i]));
        json_object_set(model, "checkpoints", items);
    }
    json_decref(found);
    return model;
}

static void print_models(json_t *models)
{
    static const char *const head[] = {">JOB", "NAME", "STATE", ">STEP", "AS OF"};
    struct table *table = table_new(head, ARRAY_LEN(head));
    size_t i;
    json_t *model;
    json_array_foreach(models, i, model)
    {
        const json_t *checkpoints = json_object_get(model, "checkpoints");
        size_t last = json_array_size(checkpoints) - 1;
        table_cell(table, "%" PRId64, number_of(model, "number"));
        table_cell(table, "%s", text_of(model, "name"));
        table_cell(table, "%s", text_of(model, "state"));
        table_cell(table, "%" PRId64, number_of(json_array_get(checkpoints, last), "step"));
        add_values(table, json_object_get(model, "last"));
    }
    table_print(table);
}

/* Of the newest jobs those that have a checkpoint. */
static bool list(struct client *client, const struct wish *wish, struct error *err)
{
    json_t *jobs = client_json(client, "GET", "/api/v1/jobs?limit=100", NULL, NULL, err);
    if (!jobs)
        return false;
    json_t *models = json_array();
    size_t i;
    json_t *job;
    json_array_foreach(json_object_get(jobs, "items"), i, job)
    {
        bool learns =
            json_is_null(json_object_get(job, "program")) && number_of(job, "attempt");
        json_t *model = learns ? read_model(client, wish, job, err) : NULL;
        if (model)
            json_array_append_new(models, model);
    }
    if (wish->json)
        change_print(json_pack("{s:O}", "items", models));
    else
        print_models(models);
    json_decref(models);
    json_decref(jobs);
    return true;
}

/* --- show --- */

/* Its checkpoints, each with its files; NULL with the error. */
static json_t *read_checkpoints(struct client *client, const struct wish *wish,
                                struct error *err)
{
    json_t *all = ask(client, wish, "", err), *whole = all ? json_array() : NULL;
    size_t i;
    json_t *checkpoint;
    json_array_foreach(json_object_get(all, "items"), i, checkpoint)
    {
        char rest[40];
        snprintf(rest, sizeof(rest), "/%" PRId64, number_of(checkpoint, "step"));
        json_t *one = whole ? ask(client, wish, rest, err) : NULL;
        if (one) {
            json_object_update_missing(one, checkpoint);
            json_array_append_new(whole, one);
        } else {
            json_decref(whole);
            whole = NULL;
        }
    }
    json_decref(all);
    return whole;
}

static bool show(struct client *client, const struct wish *wish, struct error *err)
{
    static const char *const head[] = {">STEP", "TIME", ">FILES", ">MIB"};
    json_t *all = read_checkpoints(client, wish, err);
    if (!all)
        return false;
    if (wish->json)
        return change_print(json_pack("{s:o}", "items", all));
    struct table *table = table_new(head, ARRAY_LEN(head));
    size_t i, k;
    json_t *checkpoint, *file;
    json_array_foreach(all, i, checkpoint)
    {
        int64_t bytes = 0;
        const json_t *files = json_object_get(checkpoint, "files");
        json_array_foreach(files, k, file) bytes += number_of(file, "size");
        table_cell(table, "%" PRId64, number_of(checkpoint, "step"));
        table_cell(table, "%s", text_of(checkpoint, "time"));
        if (json_array_size(files))
            table_cell(table, "%zu", json_array_size(files));
        else
            table_cell(table, "not kept");
        table_cell(table, "%.1f", (double)bytes / (1 << 20));
    }
    table_print(table);
    json_decref(all);
    return true;
}

/* --- download --- */

/* The step that is wanted, or the newest whose files are there. */
static bool find(struct client *client, const struct wish *wish, json_t **found,
                 struct error *err)
{
    char rest[40];
    *found = NULL;
    if (wish->step >= 0) {
        snprintf(rest, sizeof(rest), "/%" PRId64, wish->step);
        *found = ask(client, wish, rest, err);
        return *found != NULL;
    }
    json_t *all = ask(client, wish, "", err);
    const json_t *items = json_object_get(all, "items");
    bool ok = all != NULL;
    for (size_t i = json_array_size(items); ok && !*found && i-- > 0;) {
        snprintf(rest, sizeof(rest), "/%" PRId64, number_of(json_array_get(items, i), "step"));
        *found = ask(client, wish, rest, err);
        ok = *found != NULL;
        if (ok && !json_array_size(json_object_get(*found, "files"))) {
            json_decref(*found);
            *found = NULL;
        }
    }
    json_decref(all);
    return ok && (*found || fail(err, NOT_FOUND,
                                 "job %s has no checkpoint whose files are there", wish->job));
}

static bool fetch(struct client *client, const struct wish *wish, int64_t step,
                  const json_t *file, struct error *err)
{
    const char *name = text_of(file, "path");
    if (!*name || strchr(name, '/'))
        return fail(err, DATA_LOSS, "the server names a file '%.100s'", name);
    struct str path = {0};
    str_add(&path, "/api/v1/jobs/");
    url_encode(&path, wish->job);
    str_printf(&path, "/checkpoints/%" PRId64 "/content?path=", step);
    url_encode(&path, name);
    char *to = alloc_printf("%s/%s", wish->into, name);
    bool ok = client_download(client, str_text(&path), to, number_of(file, "size"), err);
    free(to);
    str_release(&path);
    return ok;
}

static bool download(struct client *client, const struct wish *wish, struct error *err)
{
    json_t *checkpoint;
    if (!find(client, wish, &checkpoint, err))
        return false;
    const json_t *files = json_object_get(checkpoint, "files");
    int64_t step = number_of(checkpoint, "step");
    bool ok =
        json_array_size(files) > 0 ||
        fail(err, NOT_FOUND, "the checkpoint of step %" PRId64 " is not kept any more", step);
    if (ok && mkdir(wish->into, 0777) && errno != EEXIST)
        ok = error_errno(err, UNAVAILABLE, "cannot make %s", wish->into);
    size_t i;
    json_t *file;
    json_array_foreach(files, i, file) ok = ok && fetch(client, wish, step, file, err);
    if (ok)
        printf("%s/model.ckpt-%" PRId64 "\n", wish->into, step);
    json_decref(checkpoint);
    return ok;
}

int model_main(int argc, char **argv)
{
    static const char usage[] = "model list | show JOB | download JOB [FOLDER] [--step N]     "
                                "(predict, evaluate and export take what is downloaded)";
    struct wish wish = {.into = ".", .step = -1};
    const struct option_row rows[] = {
        {"step", OPTION_NUMBER, &wish.step, "of the checkpoint (the newest)"},
        {"dir", OPTION_TEXT, &wish.folder, "folder of a server on this machine"},
        {"json", OPTION_FLAG, &wish.json, "list, show: as JSON"},
        {0},
    };
    struct options_words words;
    struct error err;
    bool (*verb)(struct client *, const struct wish *, struct error *) = NULL;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 1, 3, &words, &err))
        return cli_usage(usage, rows, &err);
    wish.job = words.count > 1 ? words.word[1] : NULL;
    if (words.count == 1 && strcmp(words.word[0], "list") == 0)
        verb = list;
    else if (words.count == 2 && strcmp(words.word[0], "show") == 0)
        verb = show;
    else if (words.count >= 2 && strcmp(words.word[0], "download") == 0)
        verb = download;
    if (words.count == 3)
        wish.into = words.word[2];
    if (!verb) {
        fail(&err, INVALID,
             "'model %.40s' with %d words; there are: list, show JOB, download JOB [FOLDER]",
             words.word[0], words.count - 1);
        return cli_usage(usage, rows, &err);
    }
    struct client *client = client_open(wish.folder, &err);
    bool ok = client && verb(client, &wish, &err);
    client_close(client);
    return ok ? CLI_OK : cli_fail(&err);
}
