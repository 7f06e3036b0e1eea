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

/* Whether an error's first line is the recorded one, of which only the start may be there. */
bool case_same_text(const char *got, const char *want);

/* --- by MasterService --- */

struct case_master; /* servers of this process, and a client of the first */

/*
 * `tasks` 1: one worker.  More: a parameter server and workers, over which each graph is
 * scattered by chance, as `seed` has it.  Not freed: they end with the process.
 */
struct case_master *case_master_start(int tasks, const struct session_options *options,
                                      uint64_t seed, struct error *err) CHECKED;

struct case_session {
    char handle[40];
    int64_t version;
};

/* What a client sends, and fails with what it is told. */
bool case_master_create(struct case_master *m, const void *graph, size_t size,
                        struct case_session *session, struct error *err) CHECKED;
bool case_master_extend(struct case_master *m, struct case_session *session, const void *graph,
                        size_t size, struct error *err) CHECKED;
bool case_master_run(struct case_master *m, struct case_session *session,
                     const struct session_run *run, struct tensor *fetched,
                     struct error *err) CHECKED;
void case_master_close(struct case_master *m, struct case_session *session);

/* Appends the graph with a wish for a task at each node; false: it is refused as it is. */
bool case_scatter(const void *graph_def, size_t size, const char *const *tasks, int tasks_count,
                  uint64_t seed, struct str *out) CHECKED;

/* --- one case --- */

/* How cases are run. */
struct case_how {
    struct session_options options;
    struct case_master *master; /* NULL: in a session of the process */
    bool texts;                 /* errors have the recorded words, not only the code */
};

struct case_world {
    const Case *c;
    const struct case_how *how;
    struct session *session; /* one of the two */
    struct case_session remote;
    char folder[64]; /* in place of $TMP in strings */
    uint64_t bits;   /* a hash of all numbers that were compared */
};

/*
 * Runs the whole case in a session of its own, `times` times.  Fails with what is not as
 * recorded, or when a later time gives other bits than the first.
 */
bool case_run(const Case *c, const struct case_how *how, int times, struct error *err) CHECKED;

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
    int master_tasks; /* not 0: by MasterService, over so many tasks */
    bool texts;       /* errors are to have the recorded words */
    uint64_t seed;    /* of how graphs are scattered over them */
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
