/*
 * folder.h - a temporary folder for the files of a test program; include it in the test only.
 *
 * Made at the first folder_path(), removed with all it holds when the program exits.
 */
#pragma once

#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
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

/* Removes a folder with all it holds. */
static inline void folder_remove_below(const char *path)
{
    nftw(path, folder_remove_one, 16, FTW_DEPTH | FTW_PHYS);
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

/* FOLDER/FILE in it, owned by the caller; the folders on the way are made. */
static inline char *folder_file(const char *folder, const char *file)
{
    char *path = alloc_printf("%s/%s", folder_path(folder), file);
    for (char *at = path + strlen(folder_name) + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        mkdir(path, 0755);
        *at = '/';
    }
    return path;
}

/* Writes FOLDER/FILE. */
static inline void folder_put(const char *folder, const char *file, const void *bytes,
                              size_t size)
{
    char *path = folder_file(folder, file);
    FILE *out = fopen(path, "wb");
    CHECK(out);
    CHECK_INT(fwrite(bytes, 1, size, out), size);
    CHECK_INT(fclose(out), 0);
    free(path);
}

static inline void folder_put_text(const char *folder, const char *file, const char *text)
{
    folder_put(folder, file, text, strlen(text));
}
