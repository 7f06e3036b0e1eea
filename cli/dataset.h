/*
 * dataset.h - datasets on disk: what a folder holds, its dataset.json, and where known ones
 * come from.
 *
 *   DIR/datasets/NAME/dataset.json
 *     {"name", "format", "train": N, "validation": N, "test": N,
 *      "columns": [{"name", "role", "dtype", "shape", "classes", "vocabulary"}],
 *      "files": [{"name", "bytes", "sha256"}]}
 *
 * Without "columns" only a job's spec says how to read the files.
 */
#pragma once

#include <limits.h>

#include <jansson.h>

#include "base/base.h"

struct error;

#define DATASET_FILES_MAX 1000000
#define DATASET_SHA256_TEXT 65 /* hexadecimal, with the NUL */

struct dataset_file {
    char name[256]; /* within the folder */
    int64_t bytes;
    char sha256[DATASET_SHA256_TEXT];
};

struct dataset_files {
    char format[32];
    json_t *columns; /* as dataset.json has them; NULL: the spec must say how to read them */
    int64_t train_count;
    int64_t validation_count;
    int64_t test_count;
    struct dataset_file *files;
    int files_count, files_capacity;
};

void dataset_files_release(struct dataset_files *files);

/* Adds a file, to be filled in. */
struct dataset_file *dataset_files_more(struct dataset_files *files);

/* --- dataset_files.c --- */

/* Sets `hex` to the SHA-256 of a file. */
bool dataset_files_sha256(const char *path, char hex[DATASET_SHA256_TEXT], int64_t *bytes,
                          struct error *err) CHECKED;

/*
 * Finds out what `folder` holds.  Reads it whole; damage is DATA_LOSS and names the file.
 * NOT_FOUND tells which files are known.  Release `files` in any case.
 */
bool dataset_files_describe(const char *folder, struct dataset_files *files,
                            struct error *err) CHECKED;

/* Writes FOLDER/dataset.json. */
bool dataset_files_write(const char *folder, const char *name,
                         const struct dataset_files *files, struct error *err) CHECKED;

/* Reads FOLDER/dataset.json; NOT_FOUND if there is none. */
bool dataset_files_read(const char *folder, struct dataset_files *files,
                        struct error *err) CHECKED;

/* --- dataset_describe.c --- */

/* The same for formats that trainyard-task reads: all files of the folder, and its answer. */
bool dataset_describe(const char *folder, struct dataset_files *files,
                      struct error *err) CHECKED;

/* The path of the program that trains, beside this one. */
bool dataset_task(char path[PATH_MAX], struct error *err) CHECKED;

/* --- dataset_fetch.c --- */

struct dataset_source {
    const char *name;
    const char *url; /* ends with '/' */
    struct dataset_file files[4];
    int files_count;
    bool is_archive; /* one .tar.gz with CIFAR-10's batches */
};

/* The known dataset of that name; NULL if there is none.  By index for lists. */
const struct dataset_source *dataset_fetch_find(const char *name);
const struct dataset_source *dataset_fetch_at(int index);

/*
 * Downloads one file to `path` by way of PATH.part, which a later call continues.  Only https,
 * or http on loopback.  Fails with DATA_LOSS when size or SHA-256 are not the expected ones
 * (then the part is removed), UNAVAILABLE when the server does not answer, EXHAUSTED when the
 * disk is full.
 */
bool dataset_fetch_file(const char *url, const char *path, const struct dataset_file *expected,
                        struct error *err) CHECKED;

/* Fetches all files of `source` (from `url` if not NULL) into `folder` and unpacks archives. */
bool dataset_fetch(const struct dataset_source *source, const char *url, const char *folder,
                   struct error *err) CHECKED;

/* Takes CIFAR-10's batches out of a .tar.gz into `folder`. */
bool dataset_fetch_unpack(const char *archive, const char *folder, struct error *err) CHECKED;
