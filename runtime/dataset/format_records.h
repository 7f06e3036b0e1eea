/*
 * format_records.h - formats whose files are examples one after the other: tables, TFRecords.
 *
 * Such a format says what a record is; the rest is here: parts by the files' names, columns
 * from the first records, words and classes, damaged records.  Every file is read from front to
 * end when the dataset is opened.  Examples that fit the memory for them are then held as
 * numbers, so an epoch costs no parsing.  Of others it is noted where they lie
 * (record_index.h), and each is read and parsed again when it is asked for, by the thread that
 * asks; what is compressed is decompressed once, to a file of its own.
 */
#pragma once

#include "runtime/dataset/format.h"
#include "runtime/dataset/rows.h"
#include "runtime/dataset/vocabulary.h"
#include "runtime/io/stream.h"

/* What the records hold; a format embeds it in what it knows besides. */
struct record_table {
    const struct record_format *format;
    const struct dataset *dataset;
    struct vocabulary **vocabularies; /* of each column; NULL: it has no words */
    double record_bytes;              /* of a file's first records, about; 0: not known */
};

struct record_place { /* in its file, once that is decompressed */
    int64_t offset;
    size_t size;
};

enum record_next {
    NEXT_RECORD,
    NEXT_END,
    NEXT_DAMAGED, /* `err` says how; what follows may be read */
    NEXT_FAILED,  /* `err` says why there is no way on */
};

struct record_format {
    const char *const *endings;        /* of its files' names, for format_files(); */
    bool (*is_name)(const char *name); /* (optional) and which of those it takes */
    const char *none;                  /* "FOLDER has no .csv file to train on" */
    enum stream_format (*stream)(const char *path); /* how a file is compressed */

    struct record_table *(*table_new)(void);
    void (*table_free)(struct record_table *table);
    /* Adds the dataset's columns, and vocabularies, from the first records of a file. */
    bool (*find)(struct record_table *table, struct dataset_opening *opening, const char *path,
                 struct error *err);

    /* A reader is one thread's: it reads a file from front to end, or records that it is given.
     */
    void *(*reader_new)(const struct record_table *table);
    void (*reader_free)(void *reader);
    bool (*open)(void *reader, const char *path, struct error *err);
    enum record_next (*next)(void *reader, struct record_place *place, struct error *err);
    /* The record is one of the file `path` and these are its bytes. */
    bool (*take)(void *reader, const char *path, const void *bytes, size_t size,
                 struct error *err);
    /* Puts the record at hand into the last row; an error says which one it is. */
    bool (*put)(void *reader, struct rows *rows, struct error *err);
};

/* As dataset_format's `is` and `open`. */
bool format_records_is(const struct record_format *format, const char *folder);
bool format_records_open(const struct record_format *format, struct dataset_opening *opening,
                         struct error *err) CHECKED;

struct record_index;

/* Examples that are read again when they are asked for.  Takes `index`; borrows `table`. */
struct dataset_examples *format_records_again(struct record_index *index,
                                              const struct record_table *table);
