/* summary_media_pb.c - summaries of tensors, pictures (PNG) and sound (WAV). */

#include <math.h>

#include "tensorflow/event.pb-c.h"

#include "base/str.h"
#include "kernels/io/summary.h"
#include "proto/message.h"
#include "runtime/io/image.h"
#include "runtime/tensor_pb.h"

/* --- tensors --- */

bool kernel_summary_tensor(const struct tensor *tag, const struct tensor *tensor,
                           const struct tensor *metadata, struct arena *arena,
                           Tensorflow__Summary *summary, struct error *err)
{
    char *name = NULL;
    if (!kernel_summary_tag(tag, arena, &name, err))
        return false;
    if (metadata->shape.rank != 0)
        return fail(err, INVALID, "serialized_summary_metadata must be scalar");
    Tensorflow__Summary__Value *value = kernel_summary_value(summary, name, arena);
    value->value_case = TENSORFLOW__SUMMARY__VALUE__VALUE_TENSOR;
    value->tensor = tensor_pack(tensor, true, arena);
    const struct tensor_string *bytes = tensor_strings(metadata);
    value->metadata = message_unpack(&tensorflow__summary_metadata__descriptor, bytes->data,
                                     bytes->size, arena, err);
    if (!value->metadata) {
        value->metadata = arena_alloc(arena, sizeof(*value->metadata));
        tensorflow__summary_metadata__init(value->metadata);
    }
    return true;
}

static bool tensor_v2(const struct kernel_call *call, int first, struct arena *arena,
                      Tensorflow__Summary *summary, struct error *err)
{
    return kernel_summary_tensor(kernel_in(call, first), kernel_in(call, first + 1),
                                 kernel_in(call, first + 2), arena, summary, err);
}

static bool tensor_v2_run(struct kernel_call *call, struct error *err)
{
    return kernel_summary_give(call, tensor_v2, err);
}

/* The older form names the node. */
static bool tensor_v1(const struct kernel_call *call, int first, struct arena *arena,
                      Tensorflow__Summary *summary, struct error *err)
{
    (void)err;
    Tensorflow__Summary__Value *value =
        kernel_summary_value(summary, (char *)protobuf_c_empty_string, arena);
    value->node_name = arena_text(arena, call->node->name);
    value->value_case = TENSORFLOW__SUMMARY__VALUE__VALUE_TENSOR;
    value->tensor = tensor_pack(kernel_in(call, first), true, arena);
    return true;
}

static bool tensor_run(struct kernel_call *call, struct error *err)
{
    return kernel_summary_give(call, tensor_v1, err);
}

/* --- what has several parts: "tag/image/0", or "tag/image" where one is the most --- */

struct parts {
    struct arena *arena;
    char *tag;
    bool numbered;
    Tensorflow__Summary__Value *values;
    Tensorflow__Summary *summary;
};

/* As many parts as the batch has, but at most what the attribute `limit` says. */
static bool parts_init(struct parts *parts, const struct kernel_call *call, int first,
                       const char *limit, struct arena *arena, Tensorflow__Summary *summary,
                       struct error *err)
{
    int64_t most = node_attr_int(call->node, limit, 3);
    int64_t batch = kernel_in(call, first + 1)->shape.dims[0];
    *parts = (struct parts){.arena = arena, .numbered = most > 1, .summary = summary};
    if (!kernel_summary_tag(kernel_in(call, first), arena, &parts->tag, err))
        return false;
    summary->n_value = (size_t)(batch < most ? batch : most);
    parts->values = arena_array(arena, summary->n_value + 1, sizeof(*parts->values));
    summary->value = arena_array(arena, summary->n_value + 1, sizeof(*summary->value));
    return true;
}

static Tensorflow__Summary__Value *part_init(struct parts *parts, int64_t i, const char *kind)
{
    Tensorflow__Summary__Value *value = parts->summary->value[i] = &parts->values[i];
    tensorflow__summary__value__init(value);
    value->tag = parts->numbered
                     ? arena_printf(parts->arena, "%s/%s/%lld", parts->tag, kind, (long long)i)
                     : arena_printf(parts->arena, "%s/%s", parts->tag, kind);
    return value;
}

/* --- pictures --- */

/* Numbers are scaled so that the largest is 255, or centred around 128 if some are negative. */
struct scaling {
    float scale, offset;
};

static bool pixel_is_finite(const struct tensor *in, int64_t at, int64_t channels)
{
    for (int64_t c = 0; c < channels; c++)
        if (!isfinite(tensor_number(in, at + c)))
            return false;
    return true;
}

static struct scaling scaling_of(const struct tensor *in, int64_t begin, int64_t pixels,
                                 int64_t channels)
{
    const float tiny = 1e-6f;
    float low = INFINITY, high = -INFINITY;
    for (int64_t p = 0; p < pixels; p++) {
        int64_t at = begin + p * channels;
        for (int64_t c = 0; pixel_is_finite(in, at, channels) && c < channels; c++) {
            float value = (float)tensor_number(in, at + c);
            low = value < low ? value : low;
            high = value > high ? value : high;
        }
    }
    if (low < 0) {
        float most = fmaxf(fabsf(low), fabsf(high));
        return (struct scaling){most < tiny ? 0 : 127 / most, 128};
    }
    return (struct scaling){high < tiny ? 0 : 255 / high, 0};
}

/* 8 bits for each number; pixels that are not finite get the bad colour. */
static void fill_pixels(const struct tensor *in, int64_t begin, struct image *image,
                        const struct tensor *bad)
{
    int64_t pixels = image->height * image->width, channels = image->channels;
    uint8_t *out = image->pixels;
    if (in->dtype == U8) {
        memcpy(out, (const uint8_t *)in->data + begin, (size_t)(pixels * channels));
        return;
    }
    struct scaling scaling = scaling_of(in, begin, pixels, channels);
    for (int64_t p = 0; p < pixels; p++) {
        int64_t at = begin + p * channels;
        bool finite = pixel_is_finite(in, at, channels);
        for (int64_t c = 0; c < channels; c++) {
            float value =
                finite ? (float)tensor_number(in, at + c) * scaling.scale + scaling.offset
                       : (float)tensor_integer(bad, c);
            out[p * channels + c] = (uint8_t)value;
        }
    }
}

static bool image_part(struct parts *parts, int64_t i, const struct tensor *in,
                       const struct tensor *bad, struct error *err)
{
    struct image image = {.frames = 1,
                          .height = in->shape.dims[1],
                          .width = in->shape.dims[2],
                          .channels = (int)in->shape.dims[3],
                          .bits = 8};
    struct str png = {0};
    if (!image_alloc(&image, err))
        return false;
    fill_pixels(in, i * image.height * image.width * image.channels, &image, bad);
    bool ok = image_write_png(&image, -1, &png, err);
    if (ok) {
        Tensorflow__Summary__Image *message = arena_alloc(parts->arena, sizeof(*message));
        tensorflow__summary__image__init(message);
        message->height = (int32_t)image.height;
        message->width = (int32_t)image.width;
        message->colorspace = image.channels;
        message->encoded_image_string.len = png.size;
        message->encoded_image_string.data = arena_copy(parts->arena, png.data, png.size);
        Tensorflow__Summary__Value *value = part_init(parts, i, "image");
        value->value_case = TENSORFLOW__SUMMARY__VALUE__VALUE_IMAGE;
        value->image = message;
    }
    str_release(&png);
    image_release(&image);
    return ok;
}

bool kernel_summary_image(const struct kernel_call *call, int first, struct arena *arena,
                          Tensorflow__Summary *summary, struct error *err)
{
    const struct tensor *in = kernel_in(call, first + 1);
    const struct tensor *bad = call->in_count > first + 2
                                   ? kernel_in(call, first + 2)
                                   : node_attr_tensor(call->node, "bad_color");
    const int64_t *dims = in->shape.dims;
    char text[SHAPE_TEXT_BYTES];
    struct parts parts;
    if (kernel_in(call, first)->shape.rank != 0)
        return fail(err, INVALID, "Tags must be a scalar");
    bool fits = in->shape.rank == 4 && (dims[3] == 1 || dims[3] == 3 || dims[3] == 4);
    if (!fits)
        return fail(err, INVALID, "Tensor must be 4-D with last dim 1, 3, or 4, not %s",
                    shape_text(&in->shape, text, sizeof(text)));
    if (!bad || bad->dtype != U8 || bad->shape.rank != 1)
        return fail(err, INVALID, "bad_color must be a uint8 vector");
    if (in->dtype != U8 && bad->count < dims[3])
        return fail(err, INVALID,
                    "expected depth <= bad_color.size, got depth = %lld, bad_color.size = %lld",
                    (long long)dims[3], (long long)bad->count);
    if (!parts_init(&parts, call, first, "max_images", arena, summary, err))
        return false;
    for (size_t i = 0; i < summary->n_value; i++)
        if (!image_part(&parts, (int64_t)i, in, bad, err))
            return false;
    return true;
}

static bool image_run(struct kernel_call *call, struct error *err)
{
    return kernel_summary_give(call, kernel_summary_image, err);
}

/* --- sound: 16-bit samples behind the header of a WAV file --- */

#define WAV_HEADER_BYTES 44

static void add_number(struct str *out, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        str_add_char(out, (char)(value >> 8 * i));
}

static void write_wav(struct str *out, const float *samples, int64_t frames, int64_t channels,
                      uint32_t rate)
{
    uint32_t bytes = (uint32_t)(frames * channels * 2), frame = (uint32_t)(channels * 2);
    str_add(out, "RIFF");
    add_number(out, bytes + WAV_HEADER_BYTES - 8, 4);
    str_add(out, "WAVEfmt ");
    add_number(out, 16, 4);
    add_number(out, 1, 2); /* PCM */
    add_number(out, (uint32_t)channels, 2);
    add_number(out, rate, 4);
    add_number(out, rate * frame, 4);
    add_number(out, frame, 2);
    add_number(out, 16, 2);
    str_add(out, "data");
    add_number(out, bytes, 4);
    for (int64_t i = 0; i < frames * channels; i++) {
        float value = roundf(samples[i] * 32768);
        value = fminf(fmaxf(value, INT16_MIN), INT16_MAX);
        add_number(out, (uint32_t)(int32_t)value, 2);
    }
}

static bool check_audio(const struct tensor *in, double rate, int64_t *channels,
                        struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    if (in->shape.rank < 2 || in->shape.rank > 3)
        return fail(err, INVALID, "Tensor must be 3-D or 2-D, got: %s",
                    shape_text(&in->shape, text, sizeof(text)));
    *channels = in->shape.rank == 2 ? 1 : in->shape.dims[2];
    if (!(rate > 0))
        return fail(err, INVALID, "sample_rate must be > 0");
    if (rate > UINT32_MAX)
        return fail(err, INVALID, "sample_rate must be in (0, 2^32), got: %.0f",
                    rate > 9.2e18 ? 9223372036854775808.0 : rate);
    if (*channels == 0 || *channels > UINT16_MAX / 2)
        return fail(err, INVALID, "num_channels %lld must be from 1 to %d",
                    (long long)*channels, UINT16_MAX / 2);
    if (in->shape.dims[1] > (UINT32_MAX - WAV_HEADER_BYTES) / 2 / *channels)
        return fail(err, INVALID, "%lld frames are too many for a WAV file",
                    (long long)in->shape.dims[1]);
    return true;
}

bool kernel_summary_audio(const struct kernel_call *call, int first, struct arena *arena,
                          Tensorflow__Summary *summary, struct error *err)
{
    const struct tensor *in = kernel_in(call, first + 1);
    int64_t channels = 0;
    struct parts parts;
    if (kernel_in(call, first)->shape.rank != 0)
        return fail(err, INVALID, "Tag must be a scalar");
    const struct tensor *rates = call->in_count > first + 2 ? kernel_in(call, first + 2) : NULL;
    if (rates && rates->count != 1)
        return fail(err, INVALID, "sample_rate must be a scalar or a single value");
    float rate = rates ? tensor_f32(rates)[0] : node_attr_float(call->node, "sample_rate", 0);
    if (!check_audio(in, rate, &channels, err) ||
        !parts_init(&parts, call, first, "max_outputs", arena, summary, err))
        return false;
    int64_t frames = in->shape.dims[1];
    for (size_t i = 0; i < summary->n_value; i++) {
        struct str wav = {0};
        write_wav(&wav, tensor_f32(in) + (int64_t)i * frames * channels, frames, channels,
                  (uint32_t)lrintf(rate));
        Tensorflow__Summary__Audio *message = arena_alloc(arena, sizeof(*message));
        tensorflow__summary__audio__init(message);
        message->sample_rate = rate;
        message->num_channels = channels;
        message->length_frames = frames;
        message->content_type = arena_text(arena, "audio/wav");
        message->encoded_audio_string.len = wav.size;
        message->encoded_audio_string.data = arena_copy(arena, wav.data, wav.size);
        str_release(&wav);
        Tensorflow__Summary__Value *value = part_init(&parts, (int64_t)i, "audio");
        value->value_case = TENSORFLOW__SUMMARY__VALUE__VALUE_AUDIO;
        value->audio = message;
    }
    return true;
}

static bool audio_run(struct kernel_call *call, struct error *err)
{
    return kernel_summary_give(call, kernel_summary_audio, err);
}

#define SUMMARY(name_, run_)                                                                   \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_tensor_summary = SUMMARY("TensorSummary", tensor_run);
const struct kernel kernel_tensor_summary_v2 = SUMMARY("TensorSummaryV2", tensor_v2_run);
const struct kernel kernel_image_summary = SUMMARY("ImageSummary", image_run);
const struct kernel kernel_audio_summary = SUMMARY("AudioSummary", audio_run);
const struct kernel kernel_audio_summary_v2 = SUMMARY("AudioSummaryV2", audio_run);
