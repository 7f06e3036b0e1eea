/* folder.h - a folder for one test, in memory where the machine has such a place. */
#pragma once

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tests/unit/test.h"

/* Owned by the caller, who gives it to folder_free(). */
static inline char *folder_new(void)
{
    char *path = alloc_printf("%s/trainyard-test-XXXXXX",
                              access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    CHECK(mkdtemp(path));
    return path;
}

static inline int folder_remove_entry(const char *path, const struct stat *info, int kind,
                                      struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

/* Removes it with all that is in it. */
static inline void folder_free(char *path)
{
    nftw(path, folder_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(path);
}
