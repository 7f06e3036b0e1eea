/*
 * stream.h - the bytes of a file from front to end, decompressed on the way.
 *
 * Inflates blocks of 256 KiB ahead, as TensorFlow does, so that a damaged file fails at the
 * same record as there: a block with an error in it delivers nothing.
 */
#pragma once

#include "base/base.h"

struct error;

enum stream_format {
    STREAM_PLAIN,
    STREAM_GZIP, /* any number of members */
    STREAM_ZLIB,
    STREAM_AUTO, /* reading: GZIP if it begins as one, else PLAIN */
};

/* --- reading --- */

struct stream;

/* Owned by the caller.  NOT_FOUND, DENIED and so on, naming the path. */
struct stream *stream_open(const char *path, enum stream_format format,
                           struct error *err) CHECKED;
void stream_close(struct stream *stream); /* NULL is fine */

/* What AUTO comes to for a file: GZIP, or PLAIN, also when it cannot be read. */
enum stream_format stream_guess(const char *path);

/*
 * Reads `size` bytes; `*count` is less only at the end of the file.  DATA_LOSS when what is
 * compressed is damaged.
 */
bool stream_read(struct stream *stream, void *out, size_t size, size_t *count,
                 struct error *err) CHECKED;

/*
 * The bytes that lie ready in memory, to be read in place: borrowed until the next call that
 * reads.  stream_take() steps over `size` of them.
 */
const void *stream_peek(const struct stream *stream, size_t *size);
void stream_take(struct stream *stream, size_t size);

int64_t stream_offset(const struct stream *stream); /* bytes delivered */
int64_t stream_place(const struct stream *stream);  /* where in the file reading has come to */
int64_t stream_bytes(const struct stream *stream);  /* size of the file */
bool stream_is_plain(const struct stream *stream);

/* At the end of the file: whether what is compressed ended there too, its checksum compared. */
bool stream_is_whole(const struct stream *stream);

/* --- writing --- */

struct stream_writer;

/* Replaces the file at `path`. */
struct stream_writer *stream_create(const char *path, enum stream_format format,
                                    struct error *err) CHECKED;
bool stream_write(struct stream_writer *writer, const void *bytes, size_t size,
                  struct error *err) CHECKED;

/* Writes what is left, syncs, closes and frees, whatever happens. */
bool stream_finish(struct stream_writer *writer, struct error *err) CHECKED;
