/*
 * trace.h - what a traced run keeps of each call, until statistics.h writes it down.
 */
#pragma once

#include "runtime/shape.h"

struct kernel_call;
struct node;

/* An output, as it was when the call had ended. */
struct trace_output {
    int slot;
    int dtype;
    struct shape shape;
    size_t bytes;
    const void *data;
    bool planned; /* in the memory of the plan, not allocated for itself */
};

struct trace_row {
    const struct node *node;
    uint64_t start_ns;
    uint64_t end_ns;
    uint32_t thread;
    size_t scratch_bytes;
    struct trace_output *outputs; /* owned; references are left out */
    int outputs_count;
};

struct trace {
    uint64_t start_us;      /* wall clock */
    uint64_t start_ns;      /* monotonic */
    struct trace_row *rows; /* one per call, in their order */
    int rows_count;
    int rows_capacity;
};

/* Adds the call that began at `start_ns` and has just ended. */
void trace_add(struct trace *trace, const struct kernel_call *call, uint64_t start_ns);
void trace_release(struct trace *trace);
