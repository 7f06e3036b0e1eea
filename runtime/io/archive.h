/*
 * archive.h - zip files: NumPy's .npz, Keras's .keras.
 *
 * (Not zip.h: libzip, which does the work, has taken the names that begin with zip_.)
 *
 * What the directory of the file claims is checked against the caller's limit before it sizes
 * anything, and what comes out is checked against the claim and its CRC-32.  Errors name the
 * file and the entry: NOT_FOUND, DENIED, EXHAUSTED (too large), DATA_LOSS (damaged, no zip
 * file).
 */
#pragma once

#include "base/base.h"

struct archive;
struct error;
struct str;

#define ARCHIVE_ENTRIES_MAX 65536

/* Opens a zip file; owned by the caller. */
struct archive *archive_open(const char *path, struct error *err) CHECKED;

/* The same of bytes in memory, borrowed until archive_close(); `name` stands in errors. */
struct archive *archive_open_bytes(const char *name, const void *bytes, size_t size,
                                   struct error *err) CHECKED;

void archive_close(struct archive *archive); /* NULL is fine */

int archive_count(const struct archive *archive);
const char *archive_name(const struct archive *archive, int index); /* borrowed */
int archive_find(const struct archive *archive, const char *name);  /* -1: there is none */

/* Replaces `out` by the bytes of an entry; EXHAUSTED when there are more than `bytes_max`. */
bool archive_read(struct archive *archive, int index, int64_t bytes_max, struct str *out,
                  struct error *err) CHECKED;

/* --- writing --- */

struct archive_entry {
    const char *name;
    const void *bytes;
    size_t size;
    bool deflate; /* else stored as it is */
};

/*
 * Writes a zip file with these entries, in their order; as file_write(), a crash leaves the old
 * file or the new.  The same entries give the same bytes.
 */
bool archive_write(const char *path, const struct archive_entry *entries, int count,
                   struct error *err) CHECKED;
