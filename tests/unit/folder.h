/*
 * folder.h - a temporary folder for the files of a test program; include it in the test only.
 *
 * Made at the first folder_path(), removed with all it holds when the program exits.
 */
#pragma once

#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/test.h"

static char folder_name[64];

static inline int folder_remove_one(const char *path, const struct stat *status, int kind,
                                    struct FTW *ftw)
{
    (void)status;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static inline void folder_remove(void)
{
    nftw(folder_name, folder_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The path of `name` in the folder; the last eight stay valid. */
static inline const char *folder_path(const char *name)
{
    static char paths[8][256];
    static int next;
    if (!folder_name[0]) {
        const char *root = getenv("TMPDIR");
        snprintf(folder_name, sizeof(folder_name), "%.40s/ty-test.XXXXXX",
                 root ? root : "/tmp");
        CHECK(mkdtemp(folder_name));
        CHECK(!atexit(folder_remove));
    }
    char *path = paths[next++ % 8];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder_name, name);
    return path;
}
