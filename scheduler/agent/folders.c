/* folders.c - the server's folder, or copies. */

#include <sys/random.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "proto/agent_pb.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/folders.h"

#define ID_FILE ".id" /* in jobs/, which every node mounts that shares anything */

static bool is_id(const char *text)
{
    return strlen(text) == FOLDERS_ID_TEXT - 1 &&
           strspn(text, "0123456789abcdef") == FOLDERS_ID_TEXT - 1;
}

bool folders_id(const char *folder, char id[FOLDERS_ID_TEXT], struct error *err)
{
    unsigned char noise[(FOLDERS_ID_TEXT - 1) / 2];
    char *jobs = alloc_printf("%s/jobs", folder);
    files_last_line(jobs, ID_FILE, id, FOLDERS_ID_TEXT);
    bool ok = is_id(id);
    if (!ok) {
        ok = getrandom(noise, sizeof(noise), 0) == (ssize_t)sizeof(noise) ||
             error_errno(err, INTERNAL, "no random numbers");
        for (size_t i = 0; i < sizeof(noise); i++)
            snprintf(id + 2 * i, 3, "%02x", noise[i]);
        ok = ok && files_make_folder(jobs, err) && files_write(jobs, ID_FILE, id, err);
    }
    free(jobs);
    return ok;
}

bool folders_are_shared(const struct agent_start_task *start)
{
    char id[FOLDERS_ID_TEXT];
    if (!*start->server_folder_id) /* of a server that knows of no other way */
        return true;
    char *jobs = files_above(start->job_folder, 1);
    files_last_line(jobs, ID_FILE, id, sizeof(id));
    bool shared = strcmp(id, start->server_folder_id) == 0 && access(jobs, W_OK) == 0;
    free(jobs);
    return shared;
}

void folders_make_own(json_t *start, const char *attempt_folder)
{
    const char *slash = strrchr(files_text(start, "dataset_folder"), '/');
    json_object_set_new(start, "dataset", json_string(slash ? slash + 1 : ""));
    json_object_set_new(start, "dataset_folder", json_string(""));
    json_object_set_new(start, "own_folder", json_true());
    json_object_set_new(
        start, "job_folder",
        json_sprintf("%s/jobs/%lld", attempt_folder, (long long)files_int(start, "job_id")));
}

bool folders_are_own(const json_t *start)
{
    return files_bool(start, "own_folder");
}

char *folders_yard(const json_t *start)
{
    return folders_are_own(start) ? alloc_text("")
                                  : files_above(files_text(start, "job_folder"), 2);
}

int64_t folders_init_job(const json_t *spec)
{
    const json_t *init = json_object_get(json_object_get(spec, "train"), "init");
    const json_t *job = json_object_get(init, "job");
    if (json_is_integer(job))
        return json_integer_value(job);
    return job ? strtoll(files_text(init, "job"), NULL, 10) : 0;
}
