/*
 * dataset.h - the examples to train on: named columns, and parts to train, validate and test.
 *
 * An example has a value in every column.  Where examples lie is the affair of the format that
 * their folder is in (format.h says how to add one): in memory as the bytes of its files, or
 * made when they are asked for.  Whoever trains sees parts, and puts their examples into
 * batches (dataset_batch.h).
 *
 * Immutable once open: threads read it freely.
 */
#pragma once

#include "runtime/dataset/feeds.h"
#include "runtime/tensor.h"

struct arena;
struct dataset_format;
struct error;
struct record_table;
struct spec_data;

/* Examples of one part; a format embeds it in what it needs besides. */
struct dataset_examples {
    int64_t count;
    /*
     * Column `column` of example `row`, elements of the column's type `stored`: borrowed from
     * the examples, or put into `scratch`, which has room for the largest column and is
     * aligned for any type.  Called by one thread at a time for each scratch.  NULL after
     * setting `err`.
     */
    const void *(*at)(const struct dataset_examples *examples, int column, int64_t row,
                      void *scratch, struct error *err);
    void (*free)(struct dataset_examples *examples);
    bool is_made; /* at() reads and decodes: several threads are worth it */
    /* (optional) What at() takes as `scratch` instead. */
    void *(*scratch_new)(const struct dataset_examples *examples);
    void (*scratch_free)(void *scratch);
};

struct dataset_part {
    int64_t count; /* 0: there is no such part */
    struct dataset_examples *examples;
    int32_t *rows; /* which of them they are; NULL: all, in their order */
};

/*
 * What becomes of a column's examples on their way into a batch: augmentation.  Embedded in
 * what it needs besides.  It must follow from `position` and its own seed alone, so that a
 * resumed run meets the same examples.
 */
struct dataset_transform {
    struct shape shape; /* of one example afterwards */
    /*
     * Makes `to` (of the column's `dtype`, of `shape`) from an example as stored (of its
     * `stored` type, of its shape, not scaled).  `position`: how many examples the run took
     * before this one; -1 in evaluations, where nothing is left to chance.
     */
    void (*run)(const struct dataset_transform *transform, const struct dataset_column *column,
                const void *from, void *to, int64_t position);
    void (*free)(struct dataset_transform *transform);
};

struct dataset {
    const struct dataset_format *format;
    struct arena *arena; /* of names, vocabularies and the like */
    struct dataset_column *columns;
    int columns_count, columns_capacity;
    struct feeds feeds; /* what the model gets */
    struct dataset_transform *
        *transforms; /* of each column; NULL: it is converted and scaled */
    struct dataset_part train;
    struct dataset_part validation; /* what was held out of `train`, or the files say so */
    struct dataset_part test;
    const char *vocabulary; /* of tokens, as tokenizer_write() gives it; NULL: there are none */
    int64_t skipped;        /* damaged records that were passed over, as the spec allows */
    struct record_table *records; /* of examples that are read when asked for; NULL: of none */
};

/* Where a dataset comes from. */
struct dataset_source {
    const char *folder;
    const struct spec_data *data; /* NULL: as a spec that says nothing */
    int64_t seed;
    const char *vocabulary; /* of a trained model, for texts; NULL: a new one is learned */
    int64_t memory;         /* of the process, in bytes; 0: the machine's */
    const char *spool;      /* folder for what is decompressed; NULL: that of temporary files */
};

/*
 * Opens the dataset in the source's folder, in the format that `data` names or its files tell,
 * and holds out of the part to train on as many examples as `data` says: which ones follows
 * from `seed` alone, every choice as likely; both parts stay in the order of the files.  The
 * source is borrowed for the call, its `augment` for the dataset's life.
 *
 * Examples of more than a gigabyte, or a quarter of `memory`, stay in their files, where the
 * format can find them again; what is trained on, and in which order, does not depend on it.
 *
 * Fails with NOT_FOUND (no folder, no format knows it, or a file missing: named), DATA_LOSS
 * (damage: file and offset, record or line), INVALID (parts or columns do not fit each other,
 * or the spec asks for what there is not: with a pointer), EXHAUSTED (more than memory allows).
 */
bool dataset_open_from(const struct dataset_source *source, struct dataset *dataset,
                       struct error *err) CHECKED;

/* The same of a folder, and what a spec says. */
bool dataset_open(const char *folder, const struct spec_data *data, int64_t seed,
                  struct dataset *dataset, struct error *err) CHECKED;
void dataset_close(struct dataset *dataset);

/* The part that evaluations look at: what was held out, else the test part; NULL: neither. */
const struct dataset_part *dataset_eval(const struct dataset *dataset);
