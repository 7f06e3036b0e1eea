/* trace.c - rows of a traced run. */

#include "runtime/trace.h"

#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "runtime/internal.h"

static void add_outputs(struct trace_row *row, const struct kernel_call *call)
{
    const struct node *node = call->node;
    row->outputs = alloc_array((size_t)node->outputs_count, sizeof(*row->outputs));
    for (int i = 0; i < node->outputs_count; i++) {
        const struct tensor *out = &call->out[i];
        if (dtype_is_ref(node->output_types[i]) || !out->data || out->shape.rank < 0)
            continue;
        row->outputs[row->outputs_count++] = (struct trace_output){.slot = i,
                                                                   .dtype = (int)out->dtype,
                                                                   .shape = out->shape,
                                                                   .bytes = tensor_bytes(out),
                                                                   .data = out->data,
                                                                   .planned = !out->buffer};
    }
}

void trace_add(struct trace *trace, const struct kernel_call *call, uint64_t start_ns)
{
    trace->rows =
        alloc_grow(trace->rows, trace->rows_count, &trace->rows_capacity, sizeof(*trace->rows));
    struct trace_row *row = &trace->rows[trace->rows_count++];
    *row = (struct trace_row){.node = call->node,
                              .start_ns = start_ns,
                              .end_ns = clock_monotonic_ns(),
                              .thread = (uint32_t)gettid()};
    for (const struct scratch_block *block = call->step->scratch; block; block = block->next)
        row->scratch_bytes += block->used;
    add_outputs(row, call);
}

void trace_release(struct trace *trace)
{
    for (int i = 0; i < trace->rows_count; i++)
        free(trace->rows[i].outputs);
    free(trace->rows);
    *trace = (struct trace){0};
}
