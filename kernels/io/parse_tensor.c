/*
 * parse_tensor.c - ParseTensor, SerializeTensor, DecodeCompressed: strings that hold a tensor
 * or compressed bytes.
 */

#include <zlib.h>

#include "base/error.h"
#include "base/str.h"
#include "kernels/list.h"
#include "runtime/tensor_pb.h"

static bool parse_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *serialized = kernel_in(call, 0);
    enum dtype dtype = (enum dtype)node_attr_type(call->node, "out_type");
    char text[SHAPE_TEXT_BYTES];
    struct tensor value;
    if (serialized->shape.rank != 0)
        return fail(err, INVALID, "Expected `serialized` to be a scalar, got shape: %s",
                    shape_text(&serialized->shape, text, sizeof(text)));
    const struct tensor_string *bytes = tensor_strings(serialized);
    if (!tensor_parse(&value, bytes->data, bytes->size, err))
        return error_prefix(err, "Could not parse `serialized` as TensorProto: ");
    if (value.dtype != dtype) {
        fail(err, INVALID, "Type mismatch between parsed tensor (%s) and dtype (%s)",
             dtype_name(value.dtype), dtype_name(dtype));
        tensor_release(&value);
        return false;
    }
    kernel_output_take(call, 0, &value);
    return true;
}

static bool serialize_run(struct kernel_call *call, struct error *err)
{
    struct tensor *out = kernel_output(call, 0, &SHAPE_SCALAR, err);
    if (!out)
        return false;
    struct str bytes = {0};
    tensor_serialize(kernel_in(call, 0), &bytes);
    tensor_set_string(out, 0, bytes.data, bytes.size);
    str_release(&bytes);
    return true;
}

/* --- compressed bytes --- */

#define INFLATE_STEP_BYTES (256 << 10)

/* Inflates all of `in`; members of gzip may follow each other. */
static bool inflate_all(z_stream *stream, struct str *out, struct error *err)
{
    for (int result = Z_OK;;) {
        if (out->size > (size_t)LIMIT_MESSAGE_BYTES)
            return fail(err, EXHAUSTED, "compressed bytes inflate to more than %lld bytes",
                        (long long)LIMIT_MESSAGE_BYTES);
        if (result == Z_STREAM_END) {
            if (stream->avail_in == 0)
                return true;
            inflateReset(stream);
        }
        size_t before = out->size;
        stream->next_out = (Bytef *)str_extend(out, INFLATE_STEP_BYTES);
        stream->avail_out = INFLATE_STEP_BYTES;
        result = inflate(stream, Z_NO_FLUSH);
        out->size = before + INFLATE_STEP_BYTES - stream->avail_out;
        if (result == Z_BUF_ERROR || (result == Z_OK && stream->avail_out && !stream->avail_in))
            return true; /* cut off: as TensorFlow, what there is */
        if (result != Z_OK && result != Z_STREAM_END)
            return fail(err, DATA_LOSS, "inflate() failed with error %d: %s", result,
                        stream->msg ? stream->msg : "unknown");
    }
}

static bool decompress(const struct tensor_string *in, bool gzip, struct str *out,
                       struct error *err)
{
    z_stream stream = {.next_in = (Bytef *)in->data, .avail_in = (uInt)in->size};
    str_clear(out);
    if (in->size == 0)
        return true;
    if (in->size > UINT32_MAX)
        return fail(err, EXHAUSTED, "compressed bytes: %zu are more than %u", in->size,
                    UINT32_MAX);
    if (inflateInit2(&stream, gzip ? MAX_WBITS + 16 : MAX_WBITS) != Z_OK)
        return fail(err, EXHAUSTED, "no memory to inflate");
    bool ok = inflate_all(&stream, out, err);
    inflateEnd(&stream);
    return ok;
}

static bool decompress_prepare(const struct node *node, void **state, struct error *err)
{
    (void)state;
    const char *type = node_attr_string(node, "compression_type", "");
    return !type[0] || strcmp(type, "ZLIB") == 0 || strcmp(type, "GZIP") == 0 ||
           fail(err, INVALID, "Only ZLIB, GZIP or NONE are supported compressions");
}

static bool decompress_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    const char *type = node_attr_string(call->node, "compression_type", "");
    if (!type[0]) {
        kernel_output_share(call, 0, in, &in->shape);
        return true;
    }
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (!out)
        return false;
    struct str bytes = {0};
    bool ok = true;
    for (int64_t i = 0; ok && i < in->count; i++) {
        ok = decompress(&tensor_strings(in)[i], type[0] == 'G', &bytes, err);
        if (ok)
            tensor_set_string(out, i, bytes.data, bytes.size);
    }
    str_release(&bytes);
    return ok;
}

const struct kernel kernel_parse_tensor = {
    .op = "ParseTensor", .device = CPU, .run = parse_run};
const struct kernel kernel_serialize_tensor = {
    .op = "SerializeTensor", .device = CPU, .run = serialize_run};
const struct kernel kernel_decode_compressed = {.op = "DecodeCompressed",
                                                .device = CPU,
                                                .prepare = decompress_prepare,
                                                .run = decompress_run};
