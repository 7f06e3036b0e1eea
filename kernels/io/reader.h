/*
 * reader.h - readers: they take file names from a queue, and give the records of those files.
 *
 * Who reads has the reader for himself until he has his records, even while the queue is empty;
 * the others wait in line.  None holds a thread while it waits.
 */
#pragma once

#include "kernels/state/queue.h"

#define READER_KIND "reader"

struct str;

struct reader_spec {
    const struct reader_format *format;
    int64_t skip_header_lines; /* of text */
    int64_t header_bytes;      /* of records of fixed length, and those below */
    int64_t record_bytes;
    int64_t footer_bytes;
    int64_t hop_bytes;
    int compression; /* enum stream_format */
};

/* How a file is cut into records.  A format without open reads the name alone. */
struct reader_format {
    const char *name;
    bool has_state; /* between records there is nothing but the counts */
    void *(*open)(const struct reader_spec *spec, const char *path, struct error *err);
    void (*close)(void *file);
    /*
     * The next record, if there is one (`*produced`).  `*at_end`: the file is at its end, with
     * this record or without.
     */
    bool (*next)(void *file, const char *path, struct str *key, struct str *value,
                 bool *produced, bool *at_end, struct error *err);
};

/* reader_formats.c */
extern const struct reader_format kernel_reader_text, kernel_reader_fixed, kernel_reader_record,
    kernel_reader_whole, kernel_reader_identity;

struct reader;

struct reader *kernel_reader_new(const struct reader_spec *spec, const char *name);
struct resource *kernel_reader_resource(struct reader *reader);

/*
 * The end of a turn, told once, from any thread: `keys` and `values` are vectors (moved away by
 * who is told), NULL for what reads nothing and when `err` is set.
 */
typedef void reader_ended(void *arg, struct tensor *keys, struct tensor *values,
                          const struct error *err);

/* At most `count` records; fewer at the end of a file, as long as there are some. */
void kernel_reader_ask_read(struct reader *reader, struct queue *queue, int64_t count,
                            struct cancel *cancel, reader_ended *ended, void *arg);

/* As it was when it was made. */
void kernel_reader_ask_reset(struct reader *reader, struct cancel *cancel, reader_ended *ended,
                             void *arg);

/* The state as bytes (`values`, a scalar), and back.  UNIMPLEMENTED in the middle of files. */
void kernel_reader_ask_save(struct reader *reader, struct cancel *cancel, reader_ended *ended,
                            void *arg);
void kernel_reader_ask_restore(struct reader *reader, const void *state, size_t size,
                               struct cancel *cancel, reader_ended *ended, void *arg);

/* Counts since it was made or reset. */
int64_t kernel_reader_records(struct reader *reader);
int64_t kernel_reader_units(struct reader *reader);
