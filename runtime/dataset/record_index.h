/*
 * record_index.h - where the records of some files lie, to read them again one by one.
 *
 * Takes 12 bytes for a record.  Filled by one thread; then any number may read at once.
 */
#pragma once

#include "base/base.h"

struct error;
struct record_index;
struct str;

struct record_index *record_index_new(void);
void record_index_free(struct record_index *index); /* NULL is fine */

/*
 * The records added from now on are of this file, which is kept open, so that it may be removed
 * after that, where `stays` is false.  Fails with NOT_FOUND, DENIED, EXHAUSTED (too many files
 * that do not stay).
 */
bool record_index_add_file(struct record_index *index, const char *path, bool stays,
                           struct error *err) CHECKED;

/* Fails with EXHAUSTED: more than INT32_MAX records, no memory, or a record too large. */
bool record_index_add(struct record_index *index, int64_t offset, size_t size,
                      struct error *err) CHECKED;

int64_t record_index_count(const struct record_index *index);

/* The file that a record is in; borrowed. */
const char *record_index_path(const struct record_index *index, int64_t record);

/* Replaces `out` by the bytes of a record.  DATA_LOSS when they are no longer there. */
bool record_index_read(const struct record_index *index, int64_t record, struct str *out,
                       struct error *err) CHECKED;

/* Puts "PATH, the record at byte OFFSET: " before the error's text; false. */
bool record_index_blame(const struct record_index *index, int64_t record, struct error *err);
