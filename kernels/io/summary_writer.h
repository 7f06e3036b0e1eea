/*
 * summary_writer.h - an event file that a graph writes: records are gathered in memory, and
 * written out when there are more than a number of them, after a time, and at the end.
 *
 * A writer is a resource that has no file until one is opened, nor after it was closed.
 * Any number of runs may use it at once.
 */
#pragma once

#include "base/base.h"

struct error;
struct resource;
struct summary_writer;

#define SUMMARY_WRITER_KIND "SummaryWriterInterface"

struct resource *kernel_summary_writer_new(void);

struct summary_writer_place {
    const char *folder; /* made if it is not there */
    const char *suffix; /* the end of the file's name */
    int64_t queue_max;  /* more records than that are written out at once */
    int64_t flush_us;   /* how old the last writing may be when a record comes */
};

/* Makes the file, if there is none open.  NOT_FOUND, DENIED, EXHAUSTED and so on. */
bool kernel_summary_writer_open(struct resource *resource,
                                const struct summary_writer_place *place,
                                struct error *err) CHECKED;

bool kernel_summary_writer_is_open(struct resource *resource);

/* Adds the data of a record.  NOT_FOUND without a file, EXHAUSTED when the disk is full. */
bool kernel_summary_writer_add(struct resource *resource, const void *data, size_t size,
                               struct error *err) CHECKED;
bool kernel_summary_writer_flush(struct resource *resource, struct error *err) CHECKED;

/* Writes what is left; there is no file then. */
bool kernel_summary_writer_close(struct resource *resource, struct error *err) CHECKED;
