/* reader_ops.c - the nodes that make readers, read with them and look at them. */

#include "kernels/io/reader.h"
#include "kernels/ref/numbers.h"
#include "kernels/state/handle.h"
#include "runtime/io/stream.h"

#include "base/alloc.h"

/* --- making --- */

static const struct reader_format *format_of(const struct node *node)
{
    static const struct reader_format *const formats[] = {
        &kernel_reader_text, &kernel_reader_fixed, &kernel_reader_record, &kernel_reader_whole,
        &kernel_reader_identity};
    for (int i = 0; i < ARRAY_LEN(formats); i++)
        if (!strncmp(node->op->name, formats[i]->name, strlen(formats[i]->name)))
            return formats[i];
    assert(!"a node that makes a reader");
    return NULL;
}

/* Another word means no compression, as in TensorFlow. */
static int compression_of(const struct node *node)
{
    const char *word = node_attr_string(node, "compression_type", "");
    if (!word[0])
        word = node_attr_string(node, "encoding", "");
    return !strcmp(word, "GZIP")   ? STREAM_GZIP
           : !strcmp(word, "ZLIB") ? STREAM_ZLIB
                                   : STREAM_PLAIN;
}

static bool read_count(const struct node *node, const char *name, int64_t *count,
                       struct error *err)
{
    *count = node_attr_int(node, name, 0);
    return *count >= 0 ||
           fail(err, INVALID, "%s must be >= 0 not %lld", name, (long long)*count);
}

static bool reader_read(const struct node *node, void **out, struct error *err)
{
    struct reader_spec spec = {.format = format_of(node), .compression = compression_of(node)};
    if (!read_count(node, "skip_header_lines", &spec.skip_header_lines, err) ||
        !read_count(node, "header_bytes", &spec.header_bytes, err) ||
        !read_count(node, "record_bytes", &spec.record_bytes, err) ||
        !read_count(node, "footer_bytes", &spec.footer_bytes, err) ||
        !read_count(node, "hop_bytes", &spec.hop_bytes, err))
        return false;
    if (!spec.hop_bytes)
        spec.hop_bytes = spec.record_bytes;
    if (spec.record_bytes > LIMIT_TENSOR_BYTES || spec.footer_bytes > LIMIT_TENSOR_BYTES)
        return fail(err, INVALID, "records of %lld and %lld bytes are too large",
                    (long long)spec.record_bytes, (long long)spec.footer_bytes);
    struct reader_spec *copy = alloc_bytes(sizeof(*copy));
    *copy = spec;
    *out = copy;
    return true;
}

static struct resource *reader_make(const void *spec, const char *name,
                                    struct kernel_call *call, struct error *err)
{
    (void)name;
    (void)err;
    return kernel_reader_resource(kernel_reader_new(spec, call->node->name));
}

static const struct handle_class reader_class = {
    .kind = READER_KIND,
    .read = reader_read,
    .free = free,
    .make = reader_make,
};

HANDLE_KERNEL(text_line_reader, "TextLineReader", reader_class);
HANDLE_KERNEL(text_line_reader_v2, "TextLineReaderV2", reader_class);
HANDLE_KERNEL(fixed_length_record_reader, "FixedLengthRecordReader", reader_class);
HANDLE_KERNEL(fixed_length_record_reader_v2, "FixedLengthRecordReaderV2", reader_class);
HANDLE_KERNEL(tf_record_reader, "TFRecordReader", reader_class);
HANDLE_KERNEL(tf_record_reader_v2, "TFRecordReaderV2", reader_class);
HANDLE_KERNEL(whole_file_reader, "WholeFileReader", reader_class);
HANDLE_KERNEL(whole_file_reader_v2, "WholeFileReaderV2", reader_class);
HANDLE_KERNEL(identity_reader, "IdentityReader", reader_class);
HANDLE_KERNEL(identity_reader_v2, "IdentityReaderV2", reader_class);

/* --- reading --- */

static struct reader *reader_in(struct kernel_call *call, struct error *err)
{
    return (struct reader *)kernel_handle_get(call, 0, READER_KIND, err);
}

static void unref(struct reader *reader)
{
    if (reader)
        resource_unref(kernel_reader_resource(reader));
}

static void ended_many(void *arg, struct tensor *keys, struct tensor *values,
                       const struct error *err)
{
    struct kernel_call *call = arg;
    if (keys) {
        kernel_output_take(call, 0, keys);
        kernel_output_take(call, 1, values);
    }
    kernel_done(call, err);
}

/* Of one record: scalars. */
static void ended_one(void *arg, struct tensor *keys, struct tensor *values,
                      const struct error *err)
{
    struct kernel_call *call = arg;
    if (keys) {
        assert(keys->count == 1);
        keys->shape = values->shape = SHAPE_SCALAR;
        kernel_output_take(call, 0, keys);
        kernel_output_take(call, 1, values);
    }
    kernel_done(call, err);
}

static void ended_state(void *arg, struct tensor *keys, struct tensor *values,
                        const struct error *err)
{
    (void)keys;
    struct kernel_call *call = arg;
    if (values && call->node->outputs_count)
        kernel_output_take(call, 0, values);
    kernel_done(call, err);
}

static struct queue *names_in(struct kernel_call *call, struct error *err)
{
    struct queue *queue = (struct queue *)kernel_handle_get(call, 1, QUEUE_KIND, err);
    if (!queue)
        return NULL;
    const struct queue_spec *spec = kernel_queue_spec(queue);
    if (spec->components == 1 && spec->types[0] == STRING)
        return queue;
    resource_unref(kernel_queue_resource(queue));
    return fail_null(err, INVALID, "Expected queue with single string component");
}

static void read_some(struct kernel_call *call, int64_t count, reader_ended *ended,
                      const struct error *refused)
{
    struct error err;
    struct reader *reader = refused ? NULL : reader_in(call, &err);
    struct queue *queue = reader ? names_in(call, &err) : NULL;
    if (queue)
        kernel_reader_ask_read(reader, queue, count, kernel_cancel(call), ended, call);
    else
        kernel_done(call, refused ? refused : &err);
    if (queue)
        resource_unref(kernel_queue_resource(queue));
    unref(reader);
}

static void read_start(struct kernel_call *call)
{
    read_some(call, 1, ended_one, NULL);
}

static void read_up_to_start(struct kernel_call *call)
{
    struct error err;
    int64_t count;
    bool ok = kernel_scalar(call, 2, "num_records", &count, &err);
    read_some(call, ok ? count : 0, ended_many, ok ? NULL : &err);
}

/* --- the rest --- */

static void reset_start(struct kernel_call *call)
{
    struct error err;
    struct reader *reader = reader_in(call, &err);
    if (reader)
        kernel_reader_ask_reset(reader, kernel_cancel(call), ended_state, call);
    else
        kernel_done(call, &err);
    unref(reader);
}

static void save_start(struct kernel_call *call)
{
    struct error err;
    struct reader *reader = reader_in(call, &err);
    if (reader)
        kernel_reader_ask_save(reader, kernel_cancel(call), ended_state, call);
    else
        kernel_done(call, &err);
    unref(reader);
}

static void restore_start(struct kernel_call *call)
{
    struct error err;
    const struct tensor *state = kernel_in(call, 1);
    struct reader *reader = reader_in(call, &err);
    if (!reader || (state->count != 1 && !fail(&err, INVALID, "Reader state must be scalar")))
        kernel_done(call, &err);
    else
        kernel_reader_ask_restore(reader, tensor_strings(state)->data,
                                  tensor_strings(state)->size, kernel_cancel(call), ended_state,
                                  call);
    unref(reader);
}

static bool count_run(struct kernel_call *call, int64_t (*count)(struct reader *reader),
                      struct error *err)
{
    struct reader *reader = reader_in(call, err);
    struct tensor *out = reader ? kernel_output(call, 0, &SHAPE_SCALAR, err) : NULL;
    if (out)
        *(int64_t *)out->data = count(reader);
    unref(reader);
    return out;
}

static bool records_run(struct kernel_call *call, struct error *err)
{
    return count_run(call, kernel_reader_records, err);
}

static bool units_run(struct kernel_call *call, struct error *err)
{
    return count_run(call, kernel_reader_units, err);
}

#define BOTH(name_, op_, how_)                                                                 \
    const struct kernel kernel_##name_ = {.op = op_, .device = CPU, how_};                     \
    const struct kernel kernel_##name_##_v2 = {.op = op_ "V2", .device = CPU, how_}

BOTH(reader_read, "ReaderRead", .start = read_start);
BOTH(reader_read_up_to, "ReaderReadUpTo", .start = read_up_to_start);
BOTH(reader_reset, "ReaderReset", .start = reset_start);
BOTH(reader_serialize_state, "ReaderSerializeState", .start = save_start);
BOTH(reader_restore_state, "ReaderRestoreState", .start = restore_start);
BOTH(reader_num_records_produced, "ReaderNumRecordsProduced", .run = records_run);
BOTH(reader_num_work_units_completed, "ReaderNumWorkUnitsCompleted", .run = units_run);
