/* keep.c - event files outlive the folder of their attempt. */

#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/keep.h"
#include "scheduler/agent/program.h"

struct keeping { /* of event files */
    const char *from;
    const char *to;
};

static bool events_move(void *self, const char *path, bool is_folder)
{
    const struct keeping *keeping = self;
    struct error err;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (is_folder)
        return !*path || strncmp(path, PROGRAM_OUT, strlen(PROGRAM_OUT)) == 0;
    if (strncmp(name, "events.out.tfevents.", 20) != 0)
        return true;
    const char *below = strncmp(path, PROGRAM_OUT "/", strlen(PROGRAM_OUT "/")) == 0
                            ? strchr(path, '/') + 1
                            : path;
    char *from = alloc_printf("%s/%s", keeping->from, path);
    char *to = alloc_printf("%s/%s", keeping->to, below);
    char *last = strrchr(to, '/');
    *last = '\0';
    bool made = files_make_folder(to, &err);
    *last = '/';
    if (made)
        (void)rename(from, to); /* on another disk it goes with the rest: the server has it */
    free(from);
    free(to);
    return true;
}

void keep_events(const char *attempt_folder, const char *job_folder)
{
    if (!*job_folder || access(job_folder, W_OK))
        return;
    char *kept = alloc_printf("%s/events/%s", job_folder, strrchr(attempt_folder, '/') + 1);
    struct keeping keeping = {attempt_folder, kept};
    files_walk(attempt_folder, "", events_move, &keeping);
    free(kept);
}
