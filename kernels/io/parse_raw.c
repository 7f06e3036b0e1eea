/* parse_raw.c - DecodeRaw, DecodePaddedRaw: the bytes of strings are the elements of a tensor.
 */

#include "base/error.h"
#include "kernels/list.h"

/* Turns the bytes of each number around; complex numbers are two. */
static void reverse_bytes(void *data, int64_t count, enum dtype dtype)
{
    size_t size = dtype_size(dtype);
    if (BIT(dtype) & DTYPES_COMPLEX) {
        size /= 2;
        count *= 2;
    }
    uint8_t *bytes = data;
    for (int64_t i = 0; size > 1 && i < count; i++, bytes += size)
        for (size_t a = 0, b = size - 1; a < b; a++, b--) {
            uint8_t swapped = bytes[a];
            bytes[a] = bytes[b];
            bytes[b] = swapped;
        }
}

/* Output 0: the input's shape with `width` elements each. */
static struct tensor *output(struct kernel_call *call, int64_t width, struct error *err)
{
    struct shape shape = kernel_in(call, 0)->shape;
    if (shape.rank == LIMIT_TENSOR_RANK)
        return fail_null(err, INVALID, "the input has %d dimensions already", shape.rank);
    shape.dims[shape.rank++] = width;
    return kernel_output(call, 0, &shape, err);
}

/* Fills element `i` of `width` numbers with the string's bytes, zeros behind. */
static void decode(const struct tensor_string *text, int64_t i, int64_t width,
                   struct tensor *out)
{
    size_t room = (size_t)width * dtype_size(out->dtype);
    size_t used = text->size < room ? text->size : room;
    uint8_t *to = (uint8_t *)out->data + (size_t)i * room;
    if (used)
        memcpy(to, text->data, used);
    memset(to + used, 0, room - used);
    for (size_t k = 0; out->dtype == BOOL && k < used; k++)
        to[k] = to[k] != 0;
}

static void decode_all(const struct kernel_call *call, int64_t width, struct tensor *out)
{
    const struct tensor *in = kernel_in(call, 0);
    for (int64_t i = 0; i < in->count && width > 0; i++)
        decode(&tensor_strings(in)[i], i, width, out);
    if (!node_attr_bool(call->node, "little_endian", true))
        reverse_bytes(out->data, out->count, out->dtype);
}

static bool raw_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    const struct tensor_string *texts = tensor_strings(in);
    enum dtype dtype = (enum dtype)node_attr_type(call->node, "out_type");
    size_t size = in->count ? texts[0].size : 0;
    for (int64_t i = 1; i < in->count; i++)
        if (texts[i].size != size)
            return fail(err, INVALID,
                        "DecodeRaw requires input strings to all be the same size, but element "
                        "%lld has size %zu != %zu",
                        (long long)i, size, texts[i].size); /* in this order, as TensorFlow */
    if (size % dtype_size(dtype))
        return fail(err, INVALID,
                    "Input to DecodeRaw has length %zu that is not a multiple of %zu, the size "
                    "of %s",
                    size, dtype_size(dtype), dtype_name(dtype));
    struct tensor *out = output(call, (int64_t)(size / dtype_size(dtype)), err);
    if (!out)
        return false;
    decode_all(call, (int64_t)(size / dtype_size(dtype)), out);
    return true;
}

static bool padded_raw_run(struct kernel_call *call, struct error *err)
{
    enum dtype dtype = (enum dtype)node_attr_type(call->node, "out_type");
    const struct tensor *length = kernel_in(call, 1);
    char text[SHAPE_TEXT_BYTES];
    if (length->shape.rank != 0)
        return fail(err, INVALID, "k must be scalar, got shape %s",
                    shape_text(&length->shape, text, sizeof(text)));
    int32_t bytes = tensor_i32(length)[0];
    if (bytes <= 0)
        return fail(err, INVALID, "fixed_length (%d) must be greater than zero.", bytes);
    if ((size_t)bytes % dtype_size(dtype))
        return fail(err, INVALID,
                    "fixed_length (%d) must be a multiple of the size of out_type (%zu)", bytes,
                    dtype_size(dtype));
    struct tensor *out = output(call, (int64_t)((size_t)bytes / dtype_size(dtype)), err);
    if (!out)
        return false;
    decode_all(call, (int64_t)((size_t)bytes / dtype_size(dtype)), out);
    return true;
}

const struct kernel kernel_decode_raw = {.op = "DecodeRaw", .device = CPU, .run = raw_run};
const struct kernel kernel_decode_padded_raw = {
    .op = "DecodePaddedRaw", .device = CPU, .run = padded_raw_run};
