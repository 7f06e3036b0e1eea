/*
 * onednn.h - what the kernels over oneDNN share: the engine, errors, memory, primitives.
 *
 * oneDNN is the OpenMP build, so its threads are those of our own kernels.  A primitive cuts
 * its work by the number of threads at its making, so it is made and run after
 * onednn_threads().
 */
#pragma once

#include <dnnl.h>

#include "base/base.h"

struct error;

/* The CPU engine and its stream; made at first use, for ever.  NULL (INTERNAL) on failure. */
dnnl_engine_t onednn_engine(struct error *err);
dnnl_stream_t onednn_stream(struct error *err);

/* Says how many threads the calls that follow on this thread may use. */
void onednn_threads(int threads);

/* False (INTERNAL, "oneDNN: WHAT: ...") unless `status` is success. */
bool onednn_check(dnnl_status_t status, const char *what, struct error *err) CHECKED;

/*
 * A primitive and its arguments.  Arguments that the caller gives anew at each run have memory
 * objects without data; others (packed weights) own theirs.
 */
#define ONEDNN_ARGS 6
struct onednn_primitive {
    dnnl_primitive_t primitive; /* NULL: nothing to do */
    dnnl_exec_arg_t args[ONEDNN_ARGS];
    int args_count;
};

/*
 * As dnnl_primitive_desc_create(), but passes over implementations whose names begin with
 * `avoided`.  The last one is taken in any case.  Owned by the caller.
 */
bool onednn_desc(const_dnnl_op_desc_t operation, const_dnnl_primitive_desc_t hint,
                 const char *avoided, dnnl_primitive_desc_t *desc, struct error *err) CHECKED;

/* Takes `desc`: makes the primitive of it and destroys it. */
bool onednn_primitive(struct onednn_primitive *p, dnnl_primitive_desc_t desc,
                      struct error *err) CHECKED;

/* Adds an argument of that layout, without data. */
bool onednn_arg(struct onednn_primitive *p, int arg, const dnnl_memory_desc_t *layout,
                struct error *err) CHECKED;

/* Where the data of argument `arg` are, from now on. */
void onednn_set(struct onednn_primitive *p, int arg, const void *data);

/* Makes `p` copy from one layout to the other; nothing to do when they are equal. */
bool onednn_reorder(struct onednn_primitive *p, const dnnl_memory_desc_t *from,
                    const dnnl_memory_desc_t *to, struct error *err) CHECKED;

bool onednn_run(struct onednn_primitive *p, struct error *err) CHECKED;

void onednn_release(struct onednn_primitive *p);
