/* chrome_pb.c - RunMetadata to trace events. */

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "proto/message.h"
#include "runtime/chrome.h"
#include "runtime/dtype.h"
#include "tensorflow/config.pb-c.h"
#include "tensorflow/step_stats.pb-c.h"

typedef Tensorflow__NodeExecStats row_proto;

static void add_text(struct str *out, const char *key, const char *text)
{
    str_printf(out, "\"%s\": ", key);
    str_add_json(out, text, strlen(text));
}

/* "name = Op(in, in)" has the op between "= " and "(". */
static void add_op(struct str *out, const row_proto *row)
{
    const char *start = strstr(row->timeline_label, " = ");
    const char *end = start ? strchr(start, '(') : NULL;
    str_add(out, "\"name\": ");
    if (end)
        str_add_json(out, start + 3, (size_t)(end - start - 3));
    else
        str_add_json(out, row->node_name, strlen(row->node_name));
}

static void add_shapes(struct str *out, const row_proto *row)
{
    struct str text = {0};
    for (size_t i = 0; i < row->n_output; i++) {
        const Tensorflow__TensorDescription *tensor = row->output[i]->tensor_description;
        if (!tensor)
            continue;
        str_printf(&text, "%s%s[", text.size ? " " : "", dtype_name((int)tensor->dtype));
        for (size_t d = 0; tensor->shape && d < tensor->shape->n_dim; d++)
            str_printf(&text, "%s%lld", d ? "," : "", (long long)tensor->shape->dim[d]->size);
        str_add(&text, "]");
    }
    add_text(out, "outputs", str_text(&text));
    str_release(&text);
}

static int64_t bytes_of(const row_proto *row)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < row->n_memory; i++)
        bytes += row->memory[i]->total_bytes;
    return bytes;
}

static void add_row(struct str *out, const row_proto *row, size_t process, const char *tag)
{
    int64_t start_ns =
        row->all_start_nanos ? row->all_start_nanos : row->all_start_micros * 1000;
    int64_t length_ns =
        row->all_end_rel_nanos ? row->all_end_rel_nanos : row->all_end_rel_micros * 1000;
    str_add(out, "{");
    add_op(out, row);
    str_printf(
        out,
        ", \"ph\": \"X\", \"cat\": \"Op\", \"pid\": %zu, \"tid\": %u, \"ts\": %lld.%03lld, "
        "\"dur\": %lld.%03lld, \"args\": {",
        process, row->thread_id, (long long)(start_ns / 1000), (long long)(start_ns % 1000),
        (long long)(length_ns / 1000), (long long)(length_ns % 1000));
    add_text(out, "node", row->node_name);
    str_add(out, ", ");
    add_text(out, "label", row->timeline_label);
    str_add(out, ", ");
    add_shapes(out, row);
    str_printf(out, ", \"bytes\": %lld, \"scratch_bytes\": %lld, ", (long long)bytes_of(row),
               (long long)(row->memory_stats ? row->memory_stats->temp_memory_size : 0));
    add_text(out, "step", tag);
    str_add(out, "}}");
}

static void add_device(struct str *out, const Tensorflow__DeviceStepStats *device,
                       size_t process, const char *tag, bool *any)
{
    str_printf(out,
               "%s{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %zu, \"tid\": 0, "
               "\"args\": {",
               *any ? ",\n" : "", process);
    add_text(out, "name", device->device);
    str_add(out, "}}");
    *any = true;
    for (size_t i = 0; i < device->n_node_stats; i++) {
        const row_proto *row = device->node_stats[i];
        if (!strcmp(row->node_name, "_SOURCE"))
            continue;
        str_add(out, ",\n");
        add_row(out, row, process, tag);
    }
}

bool chrome_add(const void *metadata, size_t size, const char *tag, struct str *out, bool *any,
                struct error *err)
{
    struct arena *arena = arena_new();
    const Tensorflow__RunMetadata *run =
        message_unpack(&tensorflow__run_metadata__descriptor, metadata, size, arena, err);
    for (size_t i = 0; run && run->step_stats && i < run->step_stats->n_dev_stats; i++)
        add_device(out, run->step_stats->dev_stats[i], i + 1, tag, any);
    arena_free(arena);
    return run;
}
