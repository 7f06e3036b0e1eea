/*
 * parse_tensor.c - ParseTensor, SerializeTensor, DecodeCompressed: strings that hold a tensor
 * or compressed bytes.
 */

#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "kernels/io/base64.h"
#include "kernels/list.h"
#include "runtime/io/gzip.h"
#include "runtime/tensor_pb.h"

static bool fail_parse(const struct tensor_string *bytes, struct error *err)
{
    struct str text = {0};
    kernel_base64(bytes->data, bytes->size, &text);
    bool ok = fail(err, INVALID, "Could not parse `serialized` as TensorProto, base64: %s",
                   str_text(&text));
    str_release(&text);
    return ok;
}

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
        return fail_parse(bytes, err);
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

/* What was cut off is, as in TensorFlow, what there is of it. */
static bool decompress(const struct tensor_string *in, bool gzip, struct str *out,
                       struct error *err)
{
    bool whole;
    str_clear(out);
    return !in->size ||
           gzip_decompress(in->data, in->size, gzip, LIMIT_MESSAGE_BYTES, out, &whole, err);
}

static bool decompress_prepare(const struct node *node, void **state, struct error *err)
{
    (void)state;
    const char *type = node_attr_string(node, "compression_type", "");
    return !type[0] || strcmp(type, "ZLIB") == 0 || strcmp(type, "GZIP") == 0 ||
           fail(err, INVALID, "Only ZLIB, ZSTD, GZIP or NONE are supported compressions");
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
