/*
 * format.h - the formats that datasets come in.
 *
 * To add one: write runtime/dataset/format_NAME.c with
 *
 *   const struct dataset_format format_NAME = {.name = "NAME", .wanted = ..., .is = ..., .open
 * = ...};
 *
 * and a row in DATASET_FORMATS.  Its open() adds the columns (format_add_column) and sets the
 * parts: `train`, and where the files say so `test` and `validation`.  Examples that fit memory
 * are tensors, one for each column (format_memory); others bring their own struct
 * dataset_examples, as windows of a text or files that are decoded when asked for do.  What
 * the folder cannot say stands in the `data` section of the spec.  The rest follows: which
 * column is the target, what is held out, shuffling, batches, evaluation.
 */
#pragma once

#include "runtime/dataset/dataset.h"

struct dataset_opening {
    const char *folder;
    const struct spec_data *data;
    int64_t seed;
    struct dataset *dataset; /* to be filled */
    bool *found;             /* of each of the spec's columns: whether the files have it */
    const char *vocabulary;  /* tokens to take, not to learn anew; NULL: none are known */
    int64_t memory;          /* bytes of examples that may be held */
    const char *spool;       /* as in struct dataset_source */
};

struct dataset_format {
    const char *name;   /* as "format" in a spec names it */
    const char *wanted; /* what its folder holds: "data_batch_1.bin (CIFAR-10)" */
    /* Whether the folder is in this format, by the names of its files alone. */
    bool (*is)(const char *folder);
    bool (*open)(struct dataset_opening *opening, struct error *err);
    bool holds_out; /* what the spec's `validation` says is its own affair */
};

/* In the order in which they are asked. */
#define DATASET_FORMATS(X)                                                                     \
    X(idx)                                                                                     \
    X(cifar10)                                                                                 \
    X(npy)                                                                                     \
    X(csv)                                                                                     \
    X(tfrecord)                                                                                \
    X(images)                                                                                  \
    X(text)

#define FORMAT_DECLARE(name) extern const struct dataset_format format_##name;
DATASET_FORMATS(FORMAT_DECLARE)

/* The format at an index, NULL after the last. */
const struct dataset_format *format_at(int index);

/* --- for formats --- */

/* Adds a column; its name and vocabulary are copied.  Returns its index. */
int format_add_column(struct dataset *dataset, const struct dataset_column *column);

/* What the `classes` of a column stand for; the words are copied. */
void format_set_vocabulary(struct dataset *dataset, struct dataset_column *column,
                           const char *const *words);

/* Adds the columns "images" of that shape (uint8, to be scaled from 0 to 1) and "labels". */
void format_add_pictures(struct dataset *dataset, const struct shape *shape);

/*
 * The part's examples are these tensors, one for each column: of the column's `stored` type,
 * (count, ...shape).  Takes them, also when it fails: INVALID when they do not fit the columns
 * or each other, naming `where` and the column.
 */
bool format_memory(struct dataset *dataset, struct dataset_part *part, struct tensor *columns,
                   const char *where, struct error *err) CHECKED;

/* INVALID when elements of that type and shape are not `count` examples of a column. */
bool format_check_column(const struct dataset_column *column, enum dtype dtype,
                         const struct shape *shape, int64_t count, const char *where,
                         struct error *err) CHECKED;

/* Raises the column's classes to hold every element of an integer tensor.  INVALID when one is
 * negative. */
bool format_count_classes(struct dataset_column *column, const struct tensor *values,
                          const char *where, struct error *err) CHECKED;

/*
 * What the spec says of a column that the files have; NULL: nothing.  What it says of others is
 * refused once the dataset is open.
 */
const struct spec_column *format_column_spec(struct dataset_opening *opening, const char *name);

enum format_part {
    FORMAT_TRAIN,
    FORMAT_VALIDATION,
    FORMAT_TEST,
    FORMAT_PARTS,
    FORMAT_NONE = -1
};

/* The part that a word names, "test", "val"; NONE when it names none. */
enum format_part format_part_of(const char *word, size_t size);

/* The part that one of the words of a file's name says: "mnist_test-00000.csv"; else to train
 * on. */
enum format_part format_part_of_file(const char *name);
const char *format_part_name(enum format_part part);
struct dataset_part *format_part(struct dataset *dataset, enum format_part part);

/* Whether a column is the target: as the spec says, else by its name, "label" for one. */
bool format_is_target(const struct spec_data *data, const char *name);

/* Whether it is the column that the spec calls the weight. */
bool format_is_weight(const struct spec_data *data, const char *name);

/* Names of the files in a folder that end as one of `endings` (ends with NULL), sorted; hidden
 * ones are passed over.  Owned by the caller, with each name; NULL after the last. */
char **format_files(const char *folder, const char *const *endings);
void format_files_free(char **names); /* NULL is fine */

/*
 * A record that is damaged, as `err` tells: false when the spec allows no more of them, true
 * when it is to be passed over, counted.  Other failures than DATA_LOSS and INVALID stand.
 */
bool format_skip(struct dataset_opening *opening, struct error *err) CHECKED;

/* The bytes that the examples of a dataset may take: what this machine has. */
int64_t format_bytes_max(void);

/* FOLDER/NAME, or FOLDER/NAME.gz; NULL when neither is there.  Owned by the caller. */
char *format_find_file(const char *folder, const char *name);
