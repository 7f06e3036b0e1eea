/* bring.c - lists first, then their files. */

#include <sys/stat.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"
#include "scheduler/agent/bring.h"
#include "scheduler/agent/datasets.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/folders.h"
#include "scheduler/agent/link.h"

enum phase {
    OWN_LIST, /* of the job's own checkpoints */
    OWN_FILES,
    INIT_LIST, /* of those that it starts from */
    INIT_FILES,
    DATASET_LIST,
    DATASET_FILES,
    BROUGHT,
};

struct bring {
    char *folder;
    json_t *start; /* borrowed */
    struct datasets *datasets;
    struct fetch *fetch;
    enum phase phase;
    int64_t init_job;
    json_t *list;  /* [{path | name, size | bytes, sha256}] of the phase */
    size_t at;     /* the file of it that is fetched */
    char *place;   /* of the dataset, once that is known */
    int64_t bytes; /* of the list's files */
    int64_t began; /* fetch_bytes() when the list was */
};

/* The tasks that read examples; parameter servers do not. */
static bool wants_dataset(const struct bring *bring)
{
    return *files_text(bring->start, "dataset") &&
           strcmp(files_text(bring->start, "role"), "ps") != 0;
}

/* What follows a phase that has been done. */
static enum phase phase_after(const struct bring *bring, enum phase phase)
{
    phase++;
    if (phase == INIT_LIST && !bring->init_job)
        phase = DATASET_LIST;
    if (phase == DATASET_LIST && !wants_dataset(bring))
        phase = BROUGHT;
    return phase;
}

struct bring *bring_new(const char *folder, json_t *start, struct datasets *datasets)
{
    struct error none;
    struct bring *bring = alloc_bytes(sizeof(*bring));
    bring->folder = alloc_text(folder);
    bring->start = start;
    bring->datasets = datasets;
    bring->fetch = fetch_new();
    json_t *spec = files_read_json(folder, "spec.json", &none);
    bring->init_job = folders_init_job(spec);
    json_decref(spec);
    /* One that was placed anew is told what the others know; they train meanwhile, so that the
     * checkpoints of a list would be gone before they are fetched. */
    if (files_int(start, "group_epoch"))
        bring->phase = phase_after(bring, OWN_FILES);
    return bring;
}

void bring_free(struct bring *bring)
{
    if (!bring)
        return;
    datasets_release(bring->datasets, bring);
    fetch_free(bring->fetch);
    json_decref(bring->list);
    free(bring->place);
    free(bring->folder);
    free(bring);
}

const char *bring_text(const struct bring *bring, char *out, size_t out_size)
{
    long long done = (long long)(fetch_bytes(bring->fetch) - bring->began);
    if (bring->phase == DATASET_FILES && bring->place)
        snprintf(out, out_size, "fetching dataset %s: %lld of %lld MB",
                 files_text(bring->start, "dataset"), done / 1000000,
                 (long long)bring->bytes / 1000000);
    else if (bring->phase == DATASET_FILES || bring->phase == DATASET_LIST)
        snprintf(out, out_size, "waiting for dataset %s, which another task fetches",
                 files_text(bring->start, "dataset"));
    else
        snprintf(out, out_size, "fetching checkpoints: %lld of %lld MB", done / 1000000,
                 (long long)bring->bytes / 1000000);
    return out;
}

/* --- a list's files --- */

static const char *name_of(const json_t *file)
{
    const char *path = files_text(file, "path");
    return *path ? path : files_text(file, "name");
}

static int64_t size_of(const json_t *file)
{
    return files_int(file, json_object_get(file, "size") ? "size" : "bytes");
}

/* Names and sizes are the server's, and become paths and room here. */
static bool list_check(struct bring *bring, const char *whose, struct error *err)
{
    size_t i;
    json_t *file;
    bring->bytes = 0;
    bring->at = 0;
    bring->began = fetch_bytes(bring->fetch);
    if (!json_is_array(bring->list))
        return fail(err, DATA_LOSS, "the list of %s has no files: add it again", whose);
    json_array_foreach(bring->list, i, file)
    {
        int64_t size = size_of(file);
        if (!path_is_below(name_of(file)) || size < 0 || size > INT64_MAX - bring->bytes)
            return fail(err, DATA_LOSS, "the list of %s has '%.100s' with %lld bytes", whose,
                        name_of(file), (long long)size);
        bring->bytes += size;
    }
    return true;
}

/* --- checkpoints --- */

static int64_t job_of(const struct bring *bring, bool init)
{
    return init ? bring->init_job : files_int(bring->start, "job_id");
}

/* ATTEMPT/jobs/N/checkpoints: the path that a task takes from its own to another job's. */
static char *checkpoints_path(const struct bring *bring, bool init)
{
    return alloc_printf("%s/jobs/%lld/checkpoints", bring->folder,
                        (long long)job_of(bring, init));
}

static enum fetch_result checkpoints_list(struct bring *bring, bool init, struct link *link,
                                          const struct agent_task_ref *task, struct error *err)
{
    const struct agent_fetch_what what = {.kind = AGENT_FETCH_CHECKPOINTS,
                                          .sha256 = "",
                                          .path = "",
                                          .job = init ? bring->init_job : 0};
    struct agent_fetch_response answer;
    struct arena *arena = arena_new();
    char *folder = checkpoints_path(bring, init);
    enum fetch_result result = FETCH_FAILED;
    if (!link_fetch(link, task, &what, 0, arena, &answer, err)) {
        result = fetch_call_failed(err);
    } else if (files_make_folder(folder, err)) {
        json_decref(bring->list);
        bring->list = json_loadb(answer.data, answer.data_size, 0, NULL);
        result = list_check(bring, "checkpoints", err) ? FETCH_DONE : FETCH_FAILED;
    }
    free(folder);
    arena_free(arena);
    return result;
}

/* Where they are is told by what was there: whatever is not in it is the task's own. */
static bool checkpoints_note(const struct bring *bring, struct error *err)
{
    json_t *known = json_object();
    char *folder = checkpoints_path(bring, false);
    for (size_t i = 0; i < json_array_size(bring->list); i++) {
        struct stat info;
        const char *name = name_of(json_array_get(bring->list, i));
        char *path = alloc_printf("%s/%s", folder, name);
        if (lstat(path, &info) == 0)
            json_object_set_new(
                known, name,
                json_pack("{s:I, s:I}", "size", (json_int_t)info.st_size, "mtime_ns",
                          (json_int_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec));
        free(path);
    }
    free(folder);
    return files_write_json(bring->folder, BRING_LIST, known, err);
}

/* One that is gone meanwhile was removed by who has newer ones: the manifests tell what is
 * whole.
 */
static enum fetch_result checkpoints_file(struct bring *bring, bool init, struct link *link,
                                          const struct agent_task_ref *task, struct error *err)
{
    const json_t *one = json_array_get(bring->list, bring->at);
    char *folder = checkpoints_path(bring, init);
    char *path = alloc_printf("%s/%s", folder, name_of(one));
    const struct fetch_file file = {.what = {.kind = AGENT_FETCH_CHECKPOINTS,
                                             .sha256 = "",
                                             .path = name_of(one),
                                             .job = init ? bring->init_job : 0},
                                    .path = path,
                                    .size = init ? -1 : size_of(one)};
    enum fetch_result result = fetch_piece(bring->fetch, &file, link, task, err);
    if (result == FETCH_FAILED && init && err->code == NOT_FOUND)
        result = FETCH_DONE;
    free(path);
    free(folder);
    return result;
}

/* --- the dataset --- */

static enum fetch_result dataset_list(struct bring *bring, struct link *link,
                                      const struct agent_task_ref *task, struct error *err)
{
    char *path = alloc_printf("%s/dataset.json", bring->folder);
    const struct fetch_file file = {
        .what = {.kind = AGENT_FETCH_DATASET, .sha256 = "", .path = "dataset.json"},
        .path = path,
        .size = -1};
    enum fetch_result result = fetch_piece(bring->fetch, &file, link, task, err);
    if (result == FETCH_MORE && fetch_bytes(bring->fetch) > LIMIT_DATASET_LIST_BYTES) {
        result = FETCH_FAILED;
        fail(err, OUT_OF_RANGE, "dataset.json of %s has more than %d bytes",
             files_text(bring->start, "dataset"), LIMIT_DATASET_LIST_BYTES);
    }
    free(path);
    return result;
}

/* In start.json, so that it is in use from now on. */
static bool dataset_tell(const struct bring *bring, const char *place, struct error *err)
{
    if (strcmp(files_text(bring->start, "dataset_folder"), place) == 0)
        return true;
    json_object_set_new(bring->start, "dataset_folder", json_string(place));
    return files_write_json(bring->folder, "start.json", json_incref(bring->start), err);
}

/* Reads the list and asks for the copy's place; FETCH_DONE: its files are to be fetched. */
static enum fetch_result dataset_place(struct bring *bring, struct error *err)
{
    char *path = alloc_printf("%s/dataset.json", bring->folder);
    json_t *list = json_load_file(path, 0, NULL);
    char *text = list ? json_dumps(list, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    const char *name = files_text(bring->start, "dataset");
    enum fetch_result result = FETCH_FAILED;
    free(path);
    if (!text) {
        fail(err, DATA_LOSS, "dataset.json of %s is damaged", name);
        json_decref(list);
        return result;
    }
    json_decref(bring->list);
    bring->list = json_incref(json_object_get(list, "files"));
    char *place = datasets_place(bring->datasets, name, text, strlen(text));
    free(text);
    if (list_check(bring, name, err)) {
        if (dataset_tell(bring, place, err)) {
            switch (datasets_take(bring->datasets, place, bring->bytes, bring, err)) {
            case DATASETS_READY:
                bring->phase = BROUGHT;
                result = FETCH_MORE;
                break;
            case DATASETS_MINE:
                result = FETCH_DONE;
                break;
            case DATASETS_OTHERS:
                result = FETCH_LATER;
                break;
            case DATASETS_FULL:
                break;
            }
        }
    }
    if (result == FETCH_DONE) {
        bring->place = place;
        char *part = datasets_part(place);
        if (!files_write_json(part, "dataset.json", json_incref(list), err))
            result = FETCH_FAILED;
        free(part);
    } else {
        free(place);
    }
    json_decref(list);
    return result;
}

static enum fetch_result dataset_file(struct bring *bring, struct link *link,
                                      const struct agent_task_ref *task, struct error *err)
{
    struct stat info;
    const json_t *one = json_array_get(bring->list, bring->at);
    char *part = datasets_part(bring->place);
    char *path = alloc_printf("%s/%s", part, name_of(one));
    const struct fetch_file file = {
        .what = {.kind = AGENT_FETCH_DATASET, .sha256 = "", .path = name_of(one)},
        .path = path,
        .sha256 = files_text(one, "sha256"),
        .size = size_of(one),
        .kept = true};
    /* One that another task, or an earlier agent, has fetched has been checked. */
    bool there = lstat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == file.size;
    enum fetch_result result =
        there ? FETCH_DONE : fetch_piece(bring->fetch, &file, link, task, err);
    free(path);
    free(part);
    return result;
}

/* --- the phases --- */

static enum fetch_result phase_go_on(struct bring *bring, struct link *link,
                                     const struct agent_task_ref *task, struct error *err)
{
    switch (bring->phase) {
    case OWN_LIST:
    case INIT_LIST:
        return checkpoints_list(bring, bring->phase == INIT_LIST, link, task, err);
    case OWN_FILES:
    case INIT_FILES:
        return checkpoints_file(bring, bring->phase == INIT_FILES, link, task, err);
    case DATASET_LIST:
        return dataset_list(bring, link, task, err);
    case DATASET_FILES:
        return bring->place ? dataset_file(bring, link, task, err) : dataset_place(bring, err);
    case BROUGHT:
        break;
    }
    return FETCH_DONE;
}

/* The phase's list is through. */
static bool phase_end(struct bring *bring, struct error *err)
{
    bool ok = true;
    if (bring->phase == OWN_FILES)
        ok = checkpoints_note(bring, err);
    else if (bring->phase == DATASET_FILES)
        ok = datasets_publish(bring->datasets, bring->place, bring, err);
    bring->phase = phase_after(bring, bring->phase);
    return ok;
}

enum fetch_result bring_go_on(struct bring *bring, struct link *link,
                              const struct agent_task_ref *task, struct error *err)
{
    bool files = bring->phase == OWN_FILES || bring->phase == INIT_FILES ||
                 (bring->phase == DATASET_FILES && bring->place);
    if (bring->phase == BROUGHT)
        return FETCH_DONE;
    if (files && bring->at >= json_array_size(bring->list))
        return phase_end(bring, err) ? FETCH_MORE : FETCH_FAILED;
    bool placing = bring->phase == DATASET_FILES && !bring->place;
    enum fetch_result result = phase_go_on(bring, link, task, err);
    if (result != FETCH_DONE)
        return result;
    if (files)
        bring->at++;
    else if (!placing)
        bring->phase = phase_after(bring, bring->phase);
    return FETCH_MORE;
}
