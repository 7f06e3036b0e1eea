/*
 * dataset.h - datasets on disk: what a folder holds, its dataset.json, and where known ones
 * come from.
 *
 *   DIR/datasets/NAME/dataset.json
 *     {"name", "format": "idx" | "cifar10", "shape": [height, width, channels], "train": N,
 * "test": N, "files": [{"name", "bytes", "sha256"}]}
 */
#pragma once

#include "base/base.h"

struct error;

#define DATASET_FILES_MAX 8
#define DATASET_SHA256_TEXT 65 /* hexadecimal, with the NUL */

struct dataset_file {
    char name[64];
    int64_t bytes;
    char sha256[DATASET_SHA256_TEXT];
};

struct dataset_files {
    const char *format;
    int64_t shape[3]; /* of one image: height, width, channels */
    int64_t train_count;
    int64_t test_count;
    struct dataset_file files[DATASET_FILES_MAX];
    int files_count;
};

/* --- dataset_files.c --- */

/* Sets `hex` to the SHA-256 of a file. */
bool dataset_files_sha256(const char *path, char hex[DATASET_SHA256_TEXT], int64_t *bytes,
                          struct error *err) CHECKED;

/*
 * Finds out what `folder` holds: IDX files under MNIST's names or CIFAR-10's batches, plain or
 * gzip. Reads them whole; damage is DATA_LOSS and names the file.  NOT_FOUND tells which names
 * are known.
 */
bool dataset_files_describe(const char *folder, struct dataset_files *files,
                            struct error *err) CHECKED;

/* Writes FOLDER/dataset.json. */
bool dataset_files_write(const char *folder, const char *name,
                         const struct dataset_files *files, struct error *err) CHECKED;

/* Reads FOLDER/dataset.json; NOT_FOUND if there is none. */
bool dataset_files_read(const char *folder, struct dataset_files *files,
                        struct error *err) CHECKED;

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
