/*
 * private.h - folders that are the task's alone: its /tmp, and a view of the machine without
 * other tasks' folders and the yard's own.
 *
 * A mount namespace, which ends with the task's last process, so nothing is left to unmount.
 * Covered folders look empty but for what is shown in them; /tmp and /var/tmp are one folder
 * of the attempt.  An ordinary user gets a user namespace with it, in which he stays who he is.
 */
#pragma once

#include <sys/types.h>

#include "base/base.h"

#define PRIVATE_PATHS_MAX 256

struct private_paths {
    const char *list[PRIVATE_PATHS_MAX];
    int count;
};

struct private_view {
    bool wanted;                /* else the task gets a folder for $TMPDIR alone */
    bool memory;                /* /dev/shm is its own, too */
    int64_t memory_bytes;       /* at most in there; 0: what the system allows */
    struct private_paths hide;  /* the yard's and the agent's folders; those missing are none */
    struct private_paths show;  /* folders in these that the task works with */
    struct private_paths named; /* what the job names, below /tmp; seen where `user` sees it */
};

/* Adds a path; false when there is no room. */
bool private_add(struct private_paths *paths, const char *path);

/* Makes the folder "tmp" in the current one, for `user` (0: for this process's). */
bool private_make_tmp(uid_t user);

/*
 * In the child, before it becomes `user` (0: stays who it is): the view, with tmp/ of `folder`,
 * an absolute path, as /tmp; then goes to that folder.  Where the system does not let it,
 * stderr is told, and $TMPDIR is all that it has.  False, with errno: the child must not go on.
 */
bool private_become(const struct private_view *view, const char *folder, uid_t user,
                    gid_t group);

/* Whether the system lets this process have a view: 0, or an errno. */
int private_probe(void);
