/* options.h - what the shim was started with. */
#pragma once

#include <sys/types.h>

#include "base/base.h"
#include "scheduler/shim/private.h"

struct options { /* all borrowed from the arguments */
    const char *folder;
    const char *cookie;
    const char *workdir; /* of the task; NULL: the folder */
    char **command;
    uid_t user;  /* of the task, and its group's number; 0: this process's */
    gid_t group; /* of which it is a member, too */
    int64_t memory_bytes;
    int64_t log_bytes;
    int restarts;
    bool no_cgroup; /* tests: find the processes by walking /proc alone */
    bool own_tmp;   /* it has a folder for temporary files, and perhaps ... */
    struct private_view view;
};

extern const char options_usage[];

/* False: they make no sense, and options_usage is to be shown. */
bool options_parse(struct options *options, int count, char **arguments);
