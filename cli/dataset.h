/*
 * dataset.h - where known datasets come from, and how one gets to a server elsewhere.
 */
#pragma once

#include "server/dataset.h"

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

/* --- dataset_upload.c: by the API; `dir` NULL: the server that client_open() finds --- */

/* Sends the files of a folder, each from where an earlier try ended, and publishes them. */
bool dataset_upload(const char *dir, const char *name, const char *from,
                    struct error *err) CHECKED;

/* Prints what the server of client_open(NULL) has. */
bool dataset_upload_list(bool json, struct error *err) CHECKED;

/* Prints one of them: what it is of and its columns. */
bool dataset_upload_show(const char *name, bool json, struct error *err) CHECKED;

/* Removes a dataset, or what has come of one. */
bool dataset_upload_remove(const char *dir, const char *name, struct error *err) CHECKED;
