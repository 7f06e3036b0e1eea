/*
 * summary_writer_pb.c - SummaryWriter and the ops that write through it: summaries, graphs and
 * whole events into an event file.
 */

#include "tensorflow/event.pb-c.h"
#include "tensorflow/graph.pb-c.h"

#include "base/clock.h"
#include "base/str.h"
#include "kernels/io/summary.h"
#include "kernels/io/summary_writer.h"
#include "kernels/state/handle.h"
#include "proto/message.h"

static struct resource *writer_of(struct kernel_call *call, struct error *err)
{
    return kernel_handle_get(call, 0, SUMMARY_WRITER_KIND, err);
}

/* What a call writes: an event of now. */
struct writing {
    struct kernel_call *call;
    struct resource *writer; /* counted */
    struct arena *arena;
    Tensorflow__Event event;
};

/* NOT_FOUND comes before all that may be wrong with the other inputs. */
static bool writing_init(struct writing *writing, struct kernel_call *call, struct error *err)
{
    *writing = (struct writing){.call = call, .event = TENSORFLOW__EVENT__INIT};
    writing->writer = writer_of(call, err);
    if (!writing->writer)
        return false;
    if (!kernel_summary_writer_is_open(writing->writer)) {
        resource_unref(writing->writer);
        return fail(err, NOT_FOUND,
                    "Resource %s does not exist: no file was made, or it was closed",
                    SUMMARY_WRITER_KIND);
    }
    writing->arena = arena_new();
    writing->event.wall_time = (double)clock_wall_us() / 1e6;
    return true;
}

/* Writes `event`, if what came before went well (`ok`). */
static bool writing_end(struct writing *writing, bool ok, const Tensorflow__Event *event,
                        struct error *err)
{
    struct str bytes = {0};
    if (ok) {
        message_pack(&event->base, &bytes);
        ok = kernel_summary_writer_add(writing->writer, str_text(&bytes), bytes.size, err);
    }
    str_release(&bytes);
    arena_free(writing->arena);
    resource_unref(writing->writer);
    return ok;
}

static bool write_made(struct kernel_call *call, summary_make *make, struct error *err)
{
    Tensorflow__Summary summary = TENSORFLOW__SUMMARY__INIT;
    struct writing writing;
    if (!writing_init(&writing, call, err))
        return false;
    writing.event.what_case = TENSORFLOW__EVENT__WHAT_SUMMARY;
    writing.event.summary = &summary;
    bool ok = kernel_scalar(call, 1, "step", &writing.event.step, err) &&
              make(call, 2, writing.arena, &summary, err);
    return writing_end(&writing, ok, &writing.event, err);
}

/* --- one kind of summary each --- */

/* TensorFlow reads all numbers but these. */
static bool check_type(const struct kernel_call *call, struct error *err)
{
    return kernel_in(call, 3)->dtype != BF16 ||
           fail(err, UNIMPLEMENTED, "SummaryFileWriter bfloat16 not supported.");
}

static bool make_scalar(const struct kernel_call *call, int first, struct arena *arena,
                        Tensorflow__Summary *summary, struct error *err)
{
    return check_type(call, err) && kernel_summary_scalar(call, first, arena, summary, err);
}

static bool make_histogram(const struct kernel_call *call, int first, struct arena *arena,
                           Tensorflow__Summary *summary, struct error *err)
{
    return (kernel_in(call, first + 1)->count == 0 || check_type(call, err)) &&
           kernel_summary_histogram(call, first, arena, summary, err);
}

static bool write_scalar(struct kernel_call *call, struct error *err)
{
    return write_made(call, make_scalar, err);
}

static bool write_histogram(struct kernel_call *call, struct error *err)
{
    return write_made(call, make_histogram, err);
}

static bool write_image(struct kernel_call *call, struct error *err)
{
    return write_made(call, kernel_summary_image, err);
}

static bool write_audio(struct kernel_call *call, struct error *err)
{
    return write_made(call, kernel_summary_audio, err);
}

/* Here the tensor comes before its tag, and what says nothing of it is left out. */
static bool make_tensor(const struct kernel_call *call, int first, struct arena *arena,
                        Tensorflow__Summary *summary, struct error *err)
{
    const struct tensor *metadata = kernel_in(call, first + 2);
    if (!kernel_summary_tensor(kernel_in(call, first + 1), kernel_in(call, first), metadata,
                               arena, summary, err))
        return false;
    if (tensor_strings(metadata)->size == 0)
        summary->value[0]->metadata = NULL;
    return true;
}

static bool write_tensor(struct kernel_call *call, struct error *err)
{
    return write_made(call, make_tensor, err);
}

/* --- what is serialized already --- */

/* The values of all summaries in the tensor. */
static bool make_raw(const struct kernel_call *call, int first, struct arena *arena,
                     Tensorflow__Summary *summary, struct error *err)
{
    const struct tensor *in = kernel_in(call, first);
    for (int64_t i = 0; i < in->count; i++) {
        const struct tensor_string *bytes = tensor_strings(in) + i;
        Tensorflow__Summary *part = message_unpack(&tensorflow__summary__descriptor,
                                                   bytes->data, bytes->size, arena, err);
        if (!part)
            return fail(err, DATA_LOSS,
                        "Bad tf.compat.v1.Summary binary proto tensor string at index %lld",
                        (long long)i);
        Tensorflow__Summary__Value **all =
            arena_array(arena, summary->n_value + part->n_value + 1, sizeof(*all));
        for (size_t v = 0; v < summary->n_value; v++)
            all[v] = summary->value[v];
        for (size_t v = 0; v < part->n_value; v++)
            all[summary->n_value++] = part->value[v];
        summary->value = all;
    }
    return true;
}

static bool write_raw(struct kernel_call *call, struct error *err)
{
    return write_made(call, make_raw, err);
}

static bool read_graph(struct writing *writing, struct error *err)
{
    const struct tensor *graph = kernel_in(writing->call, 2);
    size_t memory = 0;
    if (!kernel_scalar(writing->call, 1, "step", &writing->event.step, err))
        return false;
    if (graph->shape.rank != 0)
        return fail(err, INVALID, "the graph must be a scalar");
    const struct tensor_string *bytes = tensor_strings(graph);
    if (!message_scan(&tensorflow__graph_def__descriptor, bytes->data, bytes->size, &memory,
                      err))
        return fail(err, DATA_LOSS, "Bad tf.GraphDef binary proto tensor string");
    writing->event.what_case = TENSORFLOW__EVENT__WHAT_GRAPH_DEF;
    writing->event.graph_def = (ProtobufCBinaryData){bytes->size, (uint8_t *)bytes->data};
    return true;
}

static bool write_graph(struct kernel_call *call, struct error *err)
{
    struct writing writing;
    if (!writing_init(&writing, call, err))
        return false;
    bool ok = read_graph(&writing, err);
    return writing_end(&writing, ok, &writing.event, err);
}

static bool import_event(struct kernel_call *call, struct error *err)
{
    struct writing writing;
    const struct tensor *in = kernel_in(call, 1);
    if (!writing_init(&writing, call, err))
        return false;
    bool ok = in->shape.rank == 0 || fail(err, INVALID, "event must be a scalar");
    const Tensorflow__Event *event = NULL;
    if (ok) {
        const struct tensor_string *bytes = tensor_strings(in);
        event = message_unpack(&tensorflow__event__descriptor, bytes->data, bytes->size,
                               writing.arena, err);
        ok = event || fail(err, DATA_LOSS, "Bad tf.Event binary proto tensor string");
    }
    return writing_end(&writing, ok, event, err);
}

/* --- the writer itself --- */

static struct resource *writer_make(const void *spec, const char *name,
                                    struct kernel_call *call, struct error *err)
{
    (void)spec, (void)name, (void)call, (void)err;
    return kernel_summary_writer_new();
}

static const struct handle_class writer_class = {.kind = SUMMARY_WRITER_KIND,
                                                 .make = writer_make};

static bool create_file(struct kernel_call *call, struct error *err)
{
    int64_t queue, millis;
    if (!kernel_scalar(call, 2, "max_queue", &queue, err) ||
        !kernel_scalar(call, 3, "flush_millis", &millis, err))
        return false;
    struct resource *writer = writer_of(call, err);
    if (!writer)
        return false;
    struct arena *arena = arena_new();
    char *folder = NULL, *suffix = NULL;
    bool ok =
        kernel_summary_tag(kernel_in(call, 1), arena, &folder, err) &&
        kernel_summary_tag(kernel_in(call, 4), arena, &suffix, err) &&
        kernel_summary_writer_open(
            writer, &(struct summary_writer_place){folder, suffix, queue, millis * 1000}, err);
    arena_free(arena);
    resource_unref(writer);
    return ok;
}

static bool flush_run(struct kernel_call *call, struct error *err)
{
    struct resource *writer = writer_of(call, err);
    bool ok = writer && kernel_summary_writer_flush(writer, err);
    resource_unref(writer);
    return ok;
}

static bool close_run(struct kernel_call *call, struct error *err)
{
    struct resource *writer = writer_of(call, err);
    bool ok = writer && kernel_summary_writer_close(writer, err);
    resource_unref(writer);
    return ok;
}

HANDLE_KERNEL(summary_writer, "SummaryWriter", writer_class);

#define WRITE(name_, run_)                                                                     \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_create_summary_file_writer =
    WRITE("CreateSummaryFileWriter", create_file);
const struct kernel kernel_flush_summary_writer = WRITE("FlushSummaryWriter", flush_run);
const struct kernel kernel_close_summary_writer = WRITE("CloseSummaryWriter", close_run);
const struct kernel kernel_write_summary = WRITE("WriteSummary", write_tensor);
const struct kernel kernel_write_raw_proto_summary = WRITE("WriteRawProtoSummary", write_raw);
const struct kernel kernel_write_scalar_summary = WRITE("WriteScalarSummary", write_scalar);
const struct kernel kernel_write_histogram_summary =
    WRITE("WriteHistogramSummary", write_histogram);
const struct kernel kernel_write_image_summary = WRITE("WriteImageSummary", write_image);
const struct kernel kernel_write_audio_summary = WRITE("WriteAudioSummary", write_audio);
const struct kernel kernel_write_graph_summary = WRITE("WriteGraphSummary", write_graph);
const struct kernel kernel_import_event = WRITE("ImportEvent", import_event);
