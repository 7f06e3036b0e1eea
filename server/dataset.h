/*
 * dataset.h - a dataset on disk: what a folder holds, and its dataset.json.
 *
 *   DIR/datasets/NAME/dataset.json
 *     {"name", "format", "train": N, "validation": N, "test": N,
 *      "columns": [{"name", "role", "dtype", "shape", "classes", "vocabulary"}],
 *      "files": [{"name", "bytes", "sha256"}],
 *      "added_by": who brought it over the API, "added_us": when (wall clock)}
 *
 * Without "columns" only a job's spec says how to read the files.
 */
#pragma once

#include <limits.h>

#include <jansson.h>

#include "base/limits.h"

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
    char added_by[LIMIT_NAME_BYTES + 1]; /* "": it was put there on the server's machine */
    int64_t added_us;
};

void dataset_files_release(struct dataset_files *files);

/* Whether both have the same files, by name and hash; those of one folder have one order. */
bool dataset_files_same(const struct dataset_files *a, const struct dataset_files *b);

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

/* Gives the folder `from`, whose files are on disk, the name `place`, at once and for good:
 * after a power cut it is there whole.  EXISTS when there is something of that name. */
bool dataset_files_publish(const char *from, const char *place, struct error *err) CHECKED;

/* Reads FOLDER/dataset.json; NOT_FOUND if there is none. */
bool dataset_files_read(const char *folder, struct dataset_files *files,
                        struct error *err) CHECKED;

/* --- dataset_describe.c --- */

/*
 * The same for formats that trainyard-task reads: all files of the folder, and its answer.
 * DEADLINE when that takes longer than LIMIT_DESCRIBE_S.
 */
bool dataset_describe(const char *folder, struct dataset_files *files,
                      struct error *err) CHECKED;

/* From now on looking into datasets ends, with UNAVAILABLE: the server stops. */
void dataset_describe_end(void);
bool dataset_describe_goes_on(struct error *err) CHECKED;

/* The path of the program that trains, beside this one. */
bool dataset_task(char path[PATH_MAX], struct error *err) CHECKED;
