/* statistics_pb.c - a traced step as RunMetadata. */

#include <sys/syscall.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/str.h"
#include "proto/message.h"
#include "runtime/device.h"
#include "runtime/internal.h"
#include "runtime/op.h"
#include "runtime/statistics.h"
#include "tensorflow/config.pb-c.h"
#include "tensorflow/step_stats.pb-c.h"

typedef Tensorflow__NodeExecStats row_proto;

/* "name = Op(in1, in2)", which is what timeline tools take apart; large outputs in front. */
static char *label(const struct node *node, size_t out_bytes, struct arena *arena)
{
    struct str text = {0};
    if (out_bytes >= 100000)
        str_printf(&text, "[cpu %.1fMB] ", (double)out_bytes / 1e6);
    str_printf(&text, "%s = %s(", node->name, node->op->name);
    for (int i = 0; i < node->inputs_count; i++)
        str_printf(&text, node->inputs[i].output ? "%s%s:%d" : "%s%s", i ? ", " : "",
                   node->inputs[i].from->name, node->inputs[i].output);
    str_add(&text, ")");
    char *copy = arena_text(arena, text.data);
    str_release(&text);
    return copy;
}

static row_proto *new_row(const struct trace *trace, uint64_t start_ns, uint64_t end_ns,
                          struct arena *arena)
{
    row_proto *row = arena_alloc(arena, sizeof(*row));
    tensorflow__node_exec_stats__init(row);
    uint64_t since_ns = start_ns - trace->start_ns;
    int64_t length_ns = (int64_t)(end_ns - start_ns);
    row->all_start_micros = (int64_t)(trace->start_us + since_ns / 1000);
    row->all_start_nanos = (int64_t)(trace->start_us * 1000 + since_ns);
    row->scheduled_micros = row->all_start_micros;
    row->scheduled_nanos = row->all_start_nanos;
    row->op_end_rel_nanos = row->all_end_rel_nanos = length_ns;
    row->op_end_rel_micros = row->all_end_rel_micros = (length_ns + 999) / 1000;
    return row;
}

static void add_memory(row_proto *row, size_t bytes, struct arena *arena)
{
    Tensorflow__AllocatorMemoryUsed *memory = arena_alloc(arena, sizeof(*memory));
    tensorflow__allocator_memory_used__init(memory);
    memory->allocator_name = "cpu";
    memory->total_bytes = memory->peak_bytes = memory->live_bytes = (int64_t)bytes;
    row->n_memory = 1;
    row->memory = arena_alloc(arena, sizeof(*row->memory));
    row->memory[0] = memory;
}

void statistics_add(const struct device *device, const struct trace *trace, struct str *out)
{
    struct arena *arena = arena_new();
    size_t count = (size_t)trace->rows_count + 1;
    row_proto **rows = arena_array(arena, count, sizeof(*rows));
    rows[0] = new_row(trace, trace->start_ns, trace->start_ns, arena);
    rows[0]->node_name = "_SOURCE";
    rows[0]->timeline_label = "unknown";
    for (int s = 0; s < trace->rows_count; s++) {
        const struct trace_row *times = &trace->rows[s];
        const struct node *node = times->node;
        row_proto *row = new_row(trace, times->start_ns, times->end_ns, arena);
        row->node_name = (char *)node->name;
        row->timeline_label = label(node, times->out_bytes, arena);
        if (times->out_bytes)
            add_memory(row, times->out_bytes, arena);
        rows[s + 1] = row;
    }

    Tensorflow__DeviceStepStats stats = TENSORFLOW__DEVICE_STEP_STATS__INIT;
    stats.device = (char *)device->name;
    stats.n_node_stats = count;
    stats.node_stats = rows;
    Tensorflow__StepStats step = TENSORFLOW__STEP_STATS__INIT;
    Tensorflow__DeviceStepStats *devices[] = {&stats};
    step.n_dev_stats = 1;
    step.dev_stats = devices;
    Tensorflow__RunMetadata metadata = TENSORFLOW__RUN_METADATA__INIT;
    metadata.step_stats = &step;
    message_pack(&metadata.base, out);
    arena_free(arena);
}
