/* cases.h - the parts of tf-cases: what is recorded, one case, and the cases of a file. */
#pragma once

#include "case.pb-c.h"

#include "base/error.h"
#include "runtime/session.h"
#include "runtime/tensor.h"

struct map;
struct str;

typedef Trainyard__Cases__Case Case;
typedef Trainyard__Cases__Run Run;
typedef Trainyard__Cases__Gradient Gradient;
typedef Trainyard__Cases__Tensor Expected;

/* --- comparing --- */

/* Fails with DATA_LOSS and the first difference. */
bool case_compare(const struct tensor *got, const struct tensor *want, const Expected *how,
                  struct error *err) CHECKED;

/* --- one case --- */

struct case_world {
    const Case *c;
    const struct session_options *options;
    struct session *session;
    char folder[64]; /* in place of $TMP in strings */
    uint64_t bits;   /* a hash of all numbers that were compared */
};

/*
 * Runs the whole case in a session of its own, `times` times.  Fails with what is not as
 * recorded, or when a later time gives other bits than the first.
 */
bool case_run(const Case *c, const struct session_options *options, int times,
              struct error *err) CHECKED;

/* One run in the world's session, its values or its error compared. */
bool case_run_once(struct case_world *world, const Run *run, struct error *err) CHECKED;

/* The gradients that were recorded, by our own autodiff. */
bool case_gradient(struct case_world *world, const Gradient *gradient,
                   struct error *err) CHECKED;

/* Parses `count` tensors into `out`; what is there must be released in any case. */
bool case_read_tensors(Expected *const *from, size_t count, const struct case_world *world,
                       struct tensor *out, struct error *err) CHECKED;
void case_release_tensors(struct tensor *tensors, size_t count);

/* --- ops that are missing --- */

void case_missing_begin(void); /* once, after the kernels were added */
void case_missing_end(void);
void case_missing(const Case *c, struct str *out); /* "op op ...", "" when all are there */
void case_missing_print(void); /* the ops that have a kernel, or are the executor's own */

/* --- signatures --- */

/*
 * A line for each op, input, output and attribute, its fields divided by tabs:
 * op NAME; input|output NAME TYPE IS_REF TYPE_ATTR NUMBER_ATTR LIST_ATTR;
 * attr NAME KIND IS_LIST TYPES MINIMUM STRINGS HAS_DEFAULT DEFAULT (of a list: its length).
 */
void case_signatures_print(void);

/* --- files --- */

struct case_records {
    char *bytes;
    size_t size;
    size_t *offsets; /* of each record */
    int count;
};

bool case_records_read(const char *path, struct case_records *records,
                       struct error *err) CHECKED;
void case_records_release(struct case_records *records);

/* Owned by the caller: trainyard__cases__case__free_unpacked(). NULL: it is no case. */
Case *case_records_unpack(const struct case_records *records, int index);

/* Writes the graph of every case of the file into a folder: seeds for the fuzzer. */
void case_records_write_graphs(const char *path, const char *folder);

struct case_wanted {
    struct session_options options;
    const char *only; /* cases whose name holds this, or NULL */
    const char *but;  /* not those whose name holds this, or NULL */
    int times;        /* how often each is run */
};

struct case_totals {
    int passed, failed, skipped;
    struct map *missing; /* op -> int* */
};

/* Runs the cases of a file; prints a line for each that failed. */
bool case_child_file(const char *path, const struct case_wanted *wanted,
                     struct case_totals *totals);
