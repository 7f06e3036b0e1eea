/*
 * format_tfrecord.h - what a tf.Example's features are as columns of a dataset.
 */
#pragma once

#include "runtime/dataset/format_records.h"
#include "runtime/io/feature.h"
#include "runtime/io/record_file.h"

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
};

struct format_tfrecord_table {
    struct record_table table;              /* first */
    struct format_tfrecord_column *columns; /* as the dataset's, sorted by their names */
    int columns_count, columns_capacity;
};

struct format_tfrecord_reader {
    const struct format_tfrecord_table *table;
    struct feature_values values; /* of the feature at hand */
    int64_t *seen;                /* of each column: the last record that had it */
    int64_t number;               /* of the record, of all that were put */

    /* of a file */
    char *path; /* NULL: records are given by take() */
    struct record_file *file;
    bool ended;         /* there is no way on behind what was damaged */
    int64_t in_file;    /* the number of the record, from 1, */
    int64_t offset;     /* and where it begins */
    const void *record; /* a tf.Example, borrowed */
    size_t size;
};

/*
 * Adds a column for each feature that the records have, in the order of their names; `offsets`:
 * where in their file they begin.  Fails with INVALID and the pointer of the column: a list
 * whose length varies, bytes that could be many things.
 */
bool format_tfrecord_find(struct dataset_opening *opening, const struct tensor_string *records,
                          const int64_t *offsets, int count,
                          struct format_tfrecord_table *table, struct error *err) CHECKED;
void format_tfrecord_release(struct format_tfrecord_table *table);

/* Puts the features of the record at hand into the last row. */
bool format_tfrecord_put(struct format_tfrecord_reader *reader, struct rows *rows,
                         struct error *err) CHECKED;
