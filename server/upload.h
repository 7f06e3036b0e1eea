/*
 * upload.h - datasets that come over the API, piece by piece.
 *
 * DIR/datasets/.NAME.upload/ holds what has come so far, and .upload.json: {"user",
 * "started_us"}. Pieces are written where their file ends, so that whoever was interrupted asks
 * how much has come and goes on there.  Published, the folder gets its dataset.json and its
 * name, at once.
 */
#pragma once

#include <jansson.h>

#include "base/base.h"

struct dataset_files;
struct error;

#define UPLOAD_IDLE_DAYS 7 /* then an upload that nobody goes on with is removed */

/* Who sends, and where to; the texts are borrowed. */
struct upload {
    const char *folder; /* DIR */
    const char *name;   /* of the dataset; spec_is_name() */
    const char *user;
    bool is_admin;     /* may go on with what another began */
    int64_t bytes_max; /* all datasets of the server together; 0: what the disk holds */
};

/*
 * Writes a piece of the file `path` at `offset`, which must be where the file ends; the first
 * piece makes it.  `*received` is the file's size then, on disk; where `offset` is another it
 * fails with PRECONDITION and tells the size.  INVALID for names that cannot be, EXISTS when
 * there is such a dataset already, DENIED when another user is sending it, ABORTED while it is
 * published, EXHAUSTED when the disk or `bytes_max` would be full.
 */
bool upload_piece(const struct upload *upload, const char *path, int64_t offset,
                  const void *bytes, size_t size, int64_t *received, struct error *err) CHECKED;

/* {"user", "started_us", "files": [{"path", "size"}]} of one under way, owned; NULL with
 * NOT_FOUND. */
json_t *upload_show(const char *folder, const char *name, struct error *err) CHECKED;

/*
 * Looks what the files are and makes a dataset of them, described in `files` (release it in
 * any case).  `expected` (NULL: none) is {PATH: SHA-256}: all of these must be there, with just
 * these bytes; what else came is no fault.  INVALID when that is not so, or nothing can be made
 * of the files: they stay, for others to be sent.  Publishing again what is there already
 * succeeds.
 */
bool upload_publish(const struct upload *upload, const json_t *expected,
                    struct dataset_files *files, struct error *err) CHECKED;

/* Removes what has come so far; NOT_FOUND when nothing is under way. */
bool upload_abandon(const struct upload *upload, struct error *err) CHECKED;

/* Removes uploads that got their last piece before `before_us` (wall clock); how many. */
int upload_clean(const char *folder, int64_t before_us);

/* Removes a dataset's folder: its name is free at once, its files go then. */
bool upload_remove(const char *folder, const char *name, struct error *err) CHECKED;
