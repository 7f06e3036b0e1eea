/*
 * format_tfrecord.h - what a tf.Example's features are as columns of a dataset.
 */
#pragma once

#include "runtime/dataset/format.h"
#include "runtime/dataset/rows.h"
#include "runtime/dataset/vocabulary.h"
#include "runtime/io/feature.h"

/* How a column's values come to be. */
enum format_tfrecord_kind {
    TFRECORD_INTEGERS, /* int64 list, stored as int32 */
    TFRECORD_FLOATS,   /* float list */
    TFRECORD_BYTES,    /* one text of fixed length, stored as uint8 */
    TFRECORD_IMAGE,    /* one text that is the file of an image, stored as its pixels */
    TFRECORD_WORD,     /* one text that is a word, stored as its number */
};

struct format_tfrecord_column {
    const char *name; /* the feature's */
    size_t name_size;
    enum format_tfrecord_kind kind;
    int64_t count;                  /* values that a list must have */
    const struct spec_column *spec; /* NULL: the spec says nothing of it */
    struct vocabulary *vocabulary;  /* of words; owned */
    bool vocabulary_done;           /* its numbers are final */
    int64_t seen;                   /* the last record that had it */
};

struct format_tfrecord_reader {
    struct format_tfrecord_column *columns; /* as the dataset's */
    int columns_count, columns_capacity;
    struct feature_values values; /* of the feature at hand */
};

/*
 * Adds a column for each feature that the records have, in the order of their names; `offsets`:
 * where in their file they begin.  Fails with INVALID and the pointer of the column: a list
 * whose length varies, bytes that could be many things.
 */
bool format_tfrecord_find(struct dataset_opening *opening, const struct tensor_string *records,
                          const int64_t *offsets, int count,
                          struct format_tfrecord_reader *reader, struct error *err) CHECKED;
void format_tfrecord_release(struct format_tfrecord_reader *reader);

/* Puts a record's features into the last row.  `number`: from 1, of all records read. */
bool format_tfrecord_put(struct format_tfrecord_reader *reader, const struct dataset *dataset,
                         const void *record, size_t size, int64_t number, struct rows *rows,
                         struct error *err) CHECKED;
