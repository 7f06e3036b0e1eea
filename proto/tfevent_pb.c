/* tfevent_pb.c - event records as protobuf messages. */

#include <math.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "proto/message.h"
#include "proto/record.h"
#include "proto/tfevent.h"

#include "tensorflow/event.pb-c.h"

/* --- writing --- */

static void event_add(struct str *out, const Tensorflow__Event *event)
{
    struct str data = {0};
    message_pack(&event->base, &data);
    record_add(out, data.data, data.size);
    str_release(&data);
}

static Tensorflow__Event event_at(double wall_time, int64_t step)
{
    assert(!isnan(wall_time));
    Tensorflow__Event event = TENSORFLOW__EVENT__INIT;
    event.wall_time = wall_time;
    event.step = step;
    return event;
}

void tfevent_add_version(struct str *out, double wall_time, const char *writer)
{
    Tensorflow__SourceMetadata source = TENSORFLOW__SOURCE_METADATA__INIT;
    source.writer = (char *)writer;
    Tensorflow__Event event = event_at(floor(wall_time), 0);
    event.what_case = TENSORFLOW__EVENT__WHAT_FILE_VERSION;
    event.file_version = "brain.Event:2";
    event.source_metadata = &source;
    event_add(out, &event);
}

void tfevent_add_session(struct str *out, double wall_time, int64_t step,
                         enum tfevent_status status, const char *checkpoint_path)
{
    Tensorflow__SessionLog log = TENSORFLOW__SESSION_LOG__INIT;
    log.status = (Tensorflow__SessionLog__SessionStatus)status;
    log.checkpoint_path = (char *)checkpoint_path;
    Tensorflow__Event event = event_at(wall_time, step);
    event.what_case = TENSORFLOW__EVENT__WHAT_SESSION_LOG;
    event.session_log = &log;
    event_add(out, &event);
}

void tfevent_add_graph(struct str *out, double wall_time, const void *graph, size_t size)
{
    Tensorflow__Event event = event_at(wall_time, 0);
    event.what_case = TENSORFLOW__EVENT__WHAT_GRAPH_DEF;
    event.graph_def = (ProtobufCBinaryData){size, (uint8_t *)graph};
    event_add(out, &event);
}

void tfevent_add_scalars(struct str *out, double wall_time, int64_t step,
                         const struct tfevent_scalar *scalars, int scalars_count)
{
    struct arena *arena = arena_new();
    Tensorflow__Summary summary = TENSORFLOW__SUMMARY__INIT;
    summary.n_value = (size_t)scalars_count;
    summary.value = arena_array(arena, summary.n_value, sizeof(*summary.value));
    for (int i = 0; i < scalars_count; i++) {
        Tensorflow__Summary__Value *value = arena_alloc(arena, sizeof(*value));
        tensorflow__summary__value__init(value);
        value->tag = (char *)scalars[i].tag;
        value->value_case = TENSORFLOW__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
        value->simple_value = scalars[i].value;
        summary.value[i] = value;
    }
    Tensorflow__Event event = event_at(wall_time, step);
    event.what_case = TENSORFLOW__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    event_add(out, &event);
    arena_free(arena);
}

void tfevent_add_text(struct str *out, double wall_time, int64_t step, const char *tag,
                      const char *plugin, const void *bytes, size_t size)
{
    Tensorflow__SummaryMetadata__PluginData plugin_data =
        TENSORFLOW__SUMMARY_METADATA__PLUGIN_DATA__INIT;
    plugin_data.plugin_name = (char *)plugin;
    Tensorflow__SummaryMetadata metadata = TENSORFLOW__SUMMARY_METADATA__INIT;
    metadata.plugin_data = &plugin_data;

    Tensorflow__TensorShapeProto shape = TENSORFLOW__TENSOR_SHAPE_PROTO__INIT;
    ProtobufCBinaryData text = {size, (uint8_t *)bytes};
    Tensorflow__TensorProto tensor = TENSORFLOW__TENSOR_PROTO__INIT;
    tensor.dtype = TENSORFLOW__DATA_TYPE__DT_STRING;
    tensor.tensor_shape = &shape;
    tensor.string_val = &text;
    tensor.n_string_val = 1;

    Tensorflow__Summary__Value value = TENSORFLOW__SUMMARY__VALUE__INIT;
    value.tag = (char *)tag;
    value.metadata = &metadata;
    value.value_case = TENSORFLOW__SUMMARY__VALUE__VALUE_TENSOR;
    value.tensor = &tensor;
    Tensorflow__Summary__Value *values[] = {&value};
    Tensorflow__Summary summary = TENSORFLOW__SUMMARY__INIT;
    summary.value = values;
    summary.n_value = 1;

    Tensorflow__Event event = event_at(wall_time, step);
    event.what_case = TENSORFLOW__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    event_add(out, &event);
}

void tfevent_add_run_metadata(struct str *out, double wall_time, int64_t step, const char *tag,
                              const void *metadata, size_t size)
{
    Tensorflow__TaggedRunMetadata tagged = TENSORFLOW__TAGGED_RUN_METADATA__INIT;
    tagged.tag = (char *)tag;
    tagged.run_metadata = (ProtobufCBinaryData){size, (uint8_t *)metadata};
    Tensorflow__Event event = event_at(wall_time, step);
    event.what_case = TENSORFLOW__EVENT__WHAT_TAGGED_RUN_METADATA;
    event.tagged_run_metadata = &tagged;
    event_add(out, &event);
}

/* --- reading --- */

/* Reads number 0 of tensor_content, whose elements are `size` bytes each. */
static bool content_first(const Tensorflow__TensorProto *tensor, void *number, size_t size)
{
    if (tensor->tensor_content.len != size)
        return false;
    memcpy(number, tensor->tensor_content.data, size);
    return true;
}

/* The number in a tensor of rank 0; false if it holds none. */
static bool tensor_scalar(const Tensorflow__TensorProto *tensor, double *scalar)
{
    float f32;
    int32_t i32;
    int64_t i64;
    switch (tensor->dtype) {
    case TENSORFLOW__DATA_TYPE__DT_FLOAT:
        if (tensor->n_float_val)
            *scalar = (double)tensor->float_val[0];
        else if (content_first(tensor, &f32, sizeof(f32)))
            *scalar = (double)f32;
        else
            return false;
        return true;
    case TENSORFLOW__DATA_TYPE__DT_DOUBLE:
        if (tensor->n_double_val)
            *scalar = tensor->double_val[0];
        else
            return content_first(tensor, scalar, sizeof(*scalar));
        return true;
    case TENSORFLOW__DATA_TYPE__DT_INT32:
        if (tensor->n_int_val)
            *scalar = tensor->int_val[0];
        else if (content_first(tensor, &i32, sizeof(i32)))
            *scalar = i32;
        else
            return false;
        return true;
    case TENSORFLOW__DATA_TYPE__DT_INT64:
        if (tensor->n_int64_val)
            *scalar = (double)tensor->int64_val[0];
        else if (content_first(tensor, &i64, sizeof(i64)))
            *scalar = (double)i64;
        else
            return false;
        return true;
    default:
        return false;
    }
}

static void value_take_tensor(const Tensorflow__TensorProto *tensor,
                              struct tfevent_value *value)
{
    const Tensorflow__TensorShapeProto *shape = tensor->tensor_shape;
    if (shape && (shape->n_dim || shape->unknown_rank))
        return;
    if (tensor->dtype == TENSORFLOW__DATA_TYPE__DT_STRING && tensor->n_string_val) {
        value->bytes =
            tensor->string_val[0].len ? (const void *)tensor->string_val[0].data : "";
        value->size = tensor->string_val[0].len;
    } else if (!value->plugin[0] || !strcmp(value->plugin, "scalars")) {
        value->is_scalar = tensor_scalar(tensor, &value->scalar);
    }
}

static void value_take(const Tensorflow__Summary__Value *from, struct tfevent_value *value)
{
    value->tag = from->tag;
    value->plugin = "";
    if (from->metadata && from->metadata->plugin_data)
        value->plugin = from->metadata->plugin_data->plugin_name;

    const char *implied = "";
    switch (from->value_case) {
    case TENSORFLOW__SUMMARY__VALUE__VALUE_SIMPLE_VALUE:
        implied = "scalars";
        value->is_scalar = true;
        value->scalar = (double)from->simple_value;
        break;
    case TENSORFLOW__SUMMARY__VALUE__VALUE_TENSOR:
        value_take_tensor(from->tensor, value);
        break;
    case TENSORFLOW__SUMMARY__VALUE__VALUE_HISTO:
        implied = "histograms";
        break;
    case TENSORFLOW__SUMMARY__VALUE__VALUE_IMAGE:
        implied = "images";
        break;
    case TENSORFLOW__SUMMARY__VALUE__VALUE_AUDIO:
        implied = "audio";
        break;
    default:
        break;
    }
    if (!value->plugin[0])
        value->plugin = implied;
}

static void event_take_summary(const Tensorflow__Summary *summary, struct arena *arena,
                               struct tfevent *event)
{
    struct tfevent_value *values = arena_array(arena, summary->n_value, sizeof(*values));
    for (size_t i = 0; i < summary->n_value; i++)
        value_take(summary->value[i], &values[i]);
    event->kind = TFEVENT_SUMMARY;
    event->values = values;
    event->values_count = (int)summary->n_value;
}

static void event_take_bytes(enum tfevent_kind kind, const ProtobufCBinaryData *bytes,
                             struct tfevent *event)
{
    event->kind = kind;
    event->bytes = bytes->len ? (const void *)bytes->data : "";
    event->size = bytes->len;
}

bool tfevent_parse(const void *bytes, size_t size, struct arena *arena, struct tfevent *event,
                   struct error *err)
{
    const Tensorflow__Event *from =
        message_unpack(&tensorflow__event__descriptor, bytes, size, arena, err);
    if (!from)
        return false;
    if (isnan(from->wall_time))
        return fail(err, INVALID, "the time of an event is NaN");

    *event = (struct tfevent){.wall_time = from->wall_time, .step = from->step, .text = ""};
    switch (from->what_case) {
    case TENSORFLOW__EVENT__WHAT_FILE_VERSION:
        event->kind = TFEVENT_VERSION;
        event->text = from->file_version;
        break;
    case TENSORFLOW__EVENT__WHAT_GRAPH_DEF:
        event_take_bytes(TFEVENT_GRAPH, &from->graph_def, event);
        break;
    case TENSORFLOW__EVENT__WHAT_META_GRAPH_DEF:
        event_take_bytes(TFEVENT_META_GRAPH, &from->meta_graph_def, event);
        break;
    case TENSORFLOW__EVENT__WHAT_SUMMARY:
        event_take_summary(from->summary, arena, event);
        break;
    case TENSORFLOW__EVENT__WHAT_LOG_MESSAGE:
        event->kind = TFEVENT_LOG;
        event->text = from->log_message->message;
        break;
    case TENSORFLOW__EVENT__WHAT_SESSION_LOG:
        event->kind = TFEVENT_SESSION;
        event->status = (enum tfevent_status)from->session_log->status;
        event->text = from->session_log->checkpoint_path;
        break;
    case TENSORFLOW__EVENT__WHAT_TAGGED_RUN_METADATA:
        event_take_bytes(TFEVENT_RUN_METADATA, &from->tagged_run_metadata->run_metadata, event);
        event->text = from->tagged_run_metadata->tag;
        break;
    default:
        break;
    }
    return true;
}
