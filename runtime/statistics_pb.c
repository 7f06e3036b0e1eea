/* statistics_pb.c - a traced step as RunMetadata. */

#include <sys/syscall.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "proto/message.h"
#include "runtime/device.h"
#include "runtime/internal.h"
#include "runtime/op.h"
#include "runtime/statistics.h"
#include "runtime/tensor_pb.h"
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

static size_t bytes_of(const struct trace_row *times)
{
    size_t bytes = 0;
    for (int i = 0; i < times->outputs_count; i++)
        bytes += times->outputs[i].bytes;
    return bytes;
}

/* What the call took: from the plan's memory ("cpu_plan"), or allocated ("cpu"). */
static void add_memory(row_proto *row, const struct trace_row *times, struct arena *arena)
{
    static const char *const names[] = {"cpu", "cpu_plan"};
    row->memory = arena_array(arena, 2, sizeof(*row->memory));
    for (int planned = 0; planned < 2; planned++) {
        int64_t bytes = 0;
        for (int i = 0; i < times->outputs_count; i++)
            if (times->outputs[i].planned == planned)
                bytes += (int64_t)times->outputs[i].bytes;
        if (!bytes)
            continue;
        Tensorflow__AllocatorMemoryUsed *memory = arena_alloc(arena, sizeof(*memory));
        tensorflow__allocator_memory_used__init(memory);
        memory->allocator_name = (char *)names[planned];
        memory->total_bytes = memory->peak_bytes = memory->live_bytes = bytes;
        row->memory[row->n_memory++] = memory;
    }
    if (times->scratch_bytes) {
        row->memory_stats = arena_alloc(arena, sizeof(*row->memory_stats));
        tensorflow__memory_stats__init(row->memory_stats);
        row->memory_stats->temp_memory_size = (int64_t)times->scratch_bytes;
    }
}

static Tensorflow__NodeOutput *new_output(const struct trace_output *output,
                                          struct arena *arena)
{
    Tensorflow__NodeOutput *proto = arena_alloc(arena, sizeof(*proto));
    Tensorflow__TensorDescription *tensor = arena_alloc(arena, sizeof(*tensor));
    Tensorflow__AllocationDescription *memory = arena_alloc(arena, sizeof(*memory));
    tensorflow__node_output__init(proto);
    tensorflow__tensor_description__init(tensor);
    tensorflow__allocation_description__init(memory);
    proto->slot = output->slot;
    proto->tensor_description = tensor;
    tensor->dtype = (Tensorflow__DataType)output->dtype;
    tensor->shape = tensor_pack_shape(&output->shape, arena);
    tensor->allocation_description = memory;
    memory->requested_bytes = memory->allocated_bytes = (int64_t)output->bytes;
    memory->allocator_name = output->planned ? "cpu_plan" : "cpu";
    memory->ptr = (uint64_t)(uintptr_t)output->data;
    return proto;
}

static void add_outputs(row_proto *row, const struct trace_row *times, struct arena *arena)
{
    row->output = arena_array(arena, (size_t)times->outputs_count, sizeof(*row->output));
    for (int i = 0; i < times->outputs_count; i++)
        row->output[row->n_output++] = new_output(&times->outputs[i], arena);
}

static Tensorflow__StepStats *new_step(const struct device *device, const struct trace *trace,
                                       struct arena *arena)
{
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
        row->timeline_label = label(node, bytes_of(times), arena);
        row->thread_id = times->thread;
        add_memory(row, times, arena);
        add_outputs(row, times, arena);
        rows[s + 1] = row;
    }

    Tensorflow__DeviceStepStats **devices = arena_array(arena, 1, sizeof(*devices));
    devices[0] = arena_alloc(arena, sizeof(**devices));
    tensorflow__device_step_stats__init(devices[0]);
    devices[0]->device = (char *)device->name;
    devices[0]->n_node_stats = count;
    devices[0]->node_stats = rows;
    Tensorflow__StepStats *step = arena_alloc(arena, sizeof(*step));
    tensorflow__step_stats__init(step);
    step->n_dev_stats = 1;
    step->dev_stats = devices;
    return step;
}

void statistics_add(const struct device *device, const struct trace *trace, struct str *out)
{
    struct arena *arena = arena_new();
    Tensorflow__RunMetadata metadata = TENSORFLOW__RUN_METADATA__INIT;
    metadata.step_stats = new_step(device, trace, arena);
    message_pack(&metadata.base, out);
    arena_free(arena);
}

void statistics_add_step(const struct device *device, const struct trace *trace,
                         struct str *out)
{
    struct arena *arena = arena_new();
    message_pack(&new_step(device, trace, arena)->base, out);
    arena_free(arena);
}

void statistics_join(const void *step_stats, size_t size, struct str *out)
{
    str_add_char(out,
                 0x0a); /* RunMetadata.step_stats; readers merge what comes several times */
    for (size_t rest = size;; rest >>= 7) {
        str_add_char(out, (char)(rest < 0x80 ? rest : (rest & 0x7f) | 0x80));
        if (rest < 0x80)
            break;
    }
    str_add_bytes(out, step_stats, size);
}

void statistics_each(const void *metadata, size_t size,
                     void (*saw)(void *arg, const char *node, double us), void *arg)
{
    struct error damaged; /* then nothing was measured */
    struct arena *arena = arena_new();
    const Tensorflow__RunMetadata *run =
        message_unpack(&tensorflow__run_metadata__descriptor, metadata, size, arena, &damaged);
    for (size_t i = 0; run && run->step_stats && i < run->step_stats->n_dev_stats; i++) {
        const Tensorflow__DeviceStepStats *device = run->step_stats->dev_stats[i];
        for (size_t k = 0; k < device->n_node_stats; k++) {
            const row_proto *row = device->node_stats[k];
            int64_t ns = row->all_end_rel_nanos ? row->all_end_rel_nanos
                                                : row->all_end_rel_micros * 1000;
            saw(arg, row->node_name, (double)ns / 1000);
        }
    }
    arena_free(arena);
}
