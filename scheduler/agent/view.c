/* view.c - which folders are hidden from a task, and which are shown to it. */

#include <errno.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/folders.h"
#include "scheduler/agent/spawn.h"
#include "scheduler/agent/users.h"
#include "scheduler/agent/view.h"
#include "scheduler/agent/words.h"

#define NAMED_MAX 200 /* of paths that a job names; the shim takes some more */

static bool is_group(const json_t *start)
{
    const json_t *program = json_object_get(start, "program");
    return files_int(program ? program : start, "tasks") > 1;
}

static void show_folder(struct words *words, const char *path)
{
    if (*path == '/')
        words_option(words, "--show", path);
}

/* Another job's checkpoints, that this one starts from. */
static void show_init(struct words *words, const char *jobs, const json_t *init)
{
    const json_t *job = json_object_get(init, "job");
    if (json_is_integer(job))
        show_folder(words, arena_printf(words->arena, "%s/%lld/checkpoints", jobs,
                                        (long long)json_integer_value(job)));
    else if (*files_text(init, "job") && !strchr(files_text(init, "job"), '/'))
        show_folder(words, arena_printf(words->arena, "%s/%s/checkpoints", jobs,
                                        files_text(init, "job")));
}

static void name_path(struct words *words, const char *path, int *named)
{
    bool below = files_is_within(path, "/tmp") || files_is_within(path, "/var/tmp");
    if (below && *named < NAMED_MAX) {
        words_option(words, "--named", path);
        ++*named;
    }
}

/* What the job names itself stays, also below /tmp. */
static void name_program(struct words *words, const json_t *program)
{
    int named = 0;
    size_t i;
    json_t *word;
    name_path(words, files_text(program, "folder"), &named);
    json_array_foreach(json_object_get(program, "words"), i, word)
    {
        name_path(words, json_string_value(word), &named);
    }
}

static void name_model(struct words *words, const char *folder, const char *jobs)
{
    struct error err;
    int named = 0;
    json_t *spec = files_read_json(folder, "spec.json", &err);
    const json_t *init = json_object_get(json_object_get(spec, "train"), "init");
    char *beside = files_above(files_text(init, "file"), 1); /* a checkpoint is several files */
    show_init(words, jobs, init);
    name_path(words, beside, &named);
    free(beside);
    json_decref(spec);
}

void view_words(struct words *words, const char *task_path, const char *folder,
                const json_t *start)
{
    if (!users_of(start)) /* it could undo it, and its job may lean on the machine's /tmp */
        return;
    const char *job_folder = files_text(start, "job_folder"),
               *mode = is_group(start) ? "group" : "task";
    char *yard = folders_yard(start);
    char *agent_folder = files_above(folder, 2); /* DIR/attempts/NAME */
    char *jobs = files_above(job_folder, 1);
    char *programs = files_above(task_path, 1);
    words_option(words, "--private", mode);
    if (*yard)
        words_option(words, "--hide", yard);
    if (!files_is_within(agent_folder, yard))
        words_option(words, "--hide", agent_folder);
    show_folder(words, programs);
    show_folder(words, folder);
    show_folder(words, files_text(start, "dataset_folder"));
    if (*job_folder)
        show_folder(words, arena_printf(words->arena, "%s/checkpoints", job_folder));
    if (json_object_get(start, "program"))
        name_program(words, json_object_get(start, "program"));
    else
        name_model(words, folder, jobs);
    free(programs);
    free(jobs);
    free(agent_folder);
    free(yard);
}

int view_probe(const char *shim_path)
{
    char *const command[] = {(char *)shim_path, "--private", "probe", NULL};
    char *const environment[] = {NULL};
    struct error err;
    int code;
    return spawn_run(command, environment, "/dev/null", &code, &err) ? code : EPERM;
}

const char *view_text(int able, char *out, size_t out_size)
{
    if (able)
        snprintf(
            out, out_size,
            "tasks see the machine's /tmp and folders: it gives them no view of their own (%s)",
            strerror(able));
    else
        snprintf(out, out_size, "tasks have a /tmp and a view of folders of their own");
    return out;
}
