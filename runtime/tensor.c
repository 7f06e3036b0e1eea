/* tensor.c - typed arrays over counted buffers. */

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "runtime/buffer_shared.h"
#include "runtime/resource.h"
#include "runtime/tensor.h"

static void strings_destroy(struct buffer *buffer)
{
    struct tensor_string *strings = buffer->data;
    for (size_t i = 0; i < buffer->size / sizeof(*strings); i++)
        free(strings[i].data);
    free(buffer);
}

static void handles_destroy(struct buffer *buffer)
{
    struct resource_handle *handles = buffer->data;
    for (size_t i = 0; i < buffer->size / sizeof(*handles); i++) {
        resource_unref(handles[i].resource);
        free(handles[i].container);
        free(handles[i].name);
    }
    free(buffer);
}

/* --- tensors --- */

size_t tensor_element_bytes(enum dtype dtype)
{
    switch (dtype) {
    case STRING:
        return sizeof(struct tensor_string);
    case RESOURCE:
        return sizeof(struct resource_handle);
    case VARIANT:
        return sizeof(struct resource_handle);
    default:
        return dtype_size(dtype);
    }
}

/* Only the dimensions that are there: a whole shape is 264 bytes. */
static void set_shape(struct tensor *tensor, const struct shape *shape)
{
    tensor->shape.rank = shape->rank;
    for (int i = 0; i < shape->rank; i++)
        tensor->shape.dims[i] = shape->dims[i];
}

static bool init(struct tensor *out, enum dtype dtype, const struct shape *shape, bool sent,
                 struct error *err)
{
    assert(dtype_known(dtype));
    char text[SHAPE_TEXT_BYTES];
    int64_t count = shape_count(shape);
    if (count < 0)
        return fail(err, INVALID, "a tensor of shape %s cannot be made",
                    shape_text(shape, text, sizeof(text)));

    size_t size;
    if (__builtin_mul_overflow((size_t)count, tensor_element_bytes(dtype), &size) ||
        size > (size_t)LIMIT_TENSOR_BYTES)
        return fail(err, EXHAUSTED,
                    "a tensor of type %s and shape %s is larger than the limit of %lld bytes",
                    dtype_name(dtype), shape_text(shape, text, sizeof(text)),
                    (long long)LIMIT_TENSOR_BYTES);

    bool shared = sent && BIT(dtype) & DTYPES_PLAIN;
    struct buffer *buffer = shared ? buffer_new_shared(size) : NULL;
    if (!buffer)
        buffer = buffer_new(size);
    if (!buffer)
        return fail(err, EXHAUSTED,
                    "OOM when allocating tensor with shape%s and type %s (%zu bytes)",
                    shape_text(shape, text, sizeof(text)), dtype_name(dtype), size);
    if (BIT(dtype) & ~DTYPES_PLAIN) {
        memset(buffer->data, 0, size);
        buffer->destroy = dtype == STRING ? strings_destroy : handles_destroy;
    }
    tensor_init_foreign(out, dtype, shape, buffer);
    return true;
}

bool tensor_init(struct tensor *out, enum dtype dtype, const struct shape *shape,
                 struct error *err)
{
    return init(out, dtype, shape, false, err);
}

bool tensor_init_sent(struct tensor *out, enum dtype dtype, const struct shape *shape,
                      struct error *err)
{
    return init(out, dtype, shape, true, err);
}

void tensor_init_foreign(struct tensor *out, enum dtype dtype, const struct shape *shape,
                         struct buffer *buffer)
{
    set_shape(out, shape);
    out->dtype = dtype;
    out->count = shape_count(shape);
    out->buffer = buffer;
    out->data = buffer->data;
    assert(out->count >= 0);
}

bool tensor_init_scalar(struct tensor *out, enum dtype dtype, double value, struct error *err)
{
    if (!tensor_init(out, dtype, &SHAPE_SCALAR, err))
        return false;
    tensor_set_number(out, 0, value);
    return true;
}

bool tensor_init_string(struct tensor *out, const char *text, size_t size, struct error *err)
{
    if (!tensor_init(out, STRING, &SHAPE_SCALAR, err))
        return false;
    tensor_set_string(out, 0, text, size);
    return true;
}

bool tensor_init_copy(struct tensor *out, enum dtype dtype, const struct shape *shape,
                      const void *data, struct error *err)
{
    assert(BIT(dtype) & DTYPES_PLAIN);
    if (!tensor_init(out, dtype, shape, err))
        return false;
    if (out->count)
        memcpy(out->data, data, (size_t)out->count * dtype_size(dtype));
    return true;
}

static void copy_handle(struct resource_handle *to, const struct resource_handle *from)
{
    to->resource = from->resource;
    if (to->resource)
        resource_ref(to->resource);
    to->container = from->container ? alloc_text(from->container) : NULL;
    to->name = from->name ? alloc_text(from->name) : NULL;
}

static bool make_clone(struct tensor *out, const struct tensor *tensor, bool sent,
                       struct error *err)
{
    struct tensor copy;
    if (!init(&copy, tensor->dtype, &tensor->shape, sent, err))
        return false;
    if (BIT(tensor->dtype) & DTYPES_PLAIN) {
        if (tensor->count)
            memcpy(copy.data, tensor->data, (size_t)tensor->count * dtype_size(tensor->dtype));
    } else if (tensor->dtype == STRING) {
        for (int64_t i = 0; i < tensor->count; i++)
            tensor_set_string(&copy, i, tensor_strings(tensor)[i].data,
                              tensor_strings(tensor)[i].size);
    } else {
        for (int64_t i = 0; i < tensor->count; i++)
            copy_handle((struct resource_handle *)copy.data + i,
                        (const struct resource_handle *)tensor->data + i);
    }
    *out = copy;
    return true;
}

bool tensor_clone(struct tensor *out, const struct tensor *tensor, struct error *err)
{
    return make_clone(out, tensor, false, err);
}

bool tensor_clone_sent(struct tensor *out, const struct tensor *tensor, struct error *err)
{
    return make_clone(out, tensor, true, err);
}

/* For memory that a plan only lends: there is no way to say that there is none left. */
static void tensor_own(struct tensor *out, const struct tensor *tensor)
{
    struct error err;
    if (!tensor_clone(out, tensor, &err)) {
        fprintf(stderr, "level=error at=tensor msg=\"%s\"\n", err.text);
        abort();
    }
}

void tensor_share(struct tensor *out, const struct tensor *tensor)
{
    tensor_share_as(out, tensor, &tensor->shape);
}

void tensor_share_as(struct tensor *out, const struct tensor *tensor, const struct shape *shape)
{
    assert(shape_count(shape) == tensor->count);
    if (!tensor->buffer) {
        tensor_own(out, tensor);
    } else {
        buffer_ref(tensor->buffer);
        out->dtype = tensor->dtype;
        out->count = tensor->count;
        out->data = tensor->data;
        out->buffer = tensor->buffer;
    }
    set_shape(out, shape);
}

void tensor_release(struct tensor *tensor)
{
    buffer_unref(tensor->buffer);
    tensor->dtype = DTYPE_NONE;
    tensor->buffer = NULL;
    tensor->data = NULL;
    tensor->count = 0;
}

bool tensor_is_exclusive(const struct tensor *tensor)
{
    const struct buffer *buffer = tensor->buffer;
    return buffer && __atomic_load_n(&buffer->references, __ATOMIC_ACQUIRE) == 1 &&
           !__atomic_load_n(&buffer->borrowers, __ATOMIC_ACQUIRE);
}

size_t tensor_bytes(const struct tensor *tensor)
{
    size_t bytes = (size_t)tensor->count * tensor_element_bytes(tensor->dtype);
    if (tensor->dtype == STRING)
        for (int64_t i = 0; i < tensor->count; i++)
            bytes += tensor_strings(tensor)[i].size;
    return bytes;
}

void tensor_set_string(struct tensor *tensor, int64_t index, const char *data, size_t size)
{
    assert(tensor->dtype == STRING);
    assert(index >= 0 && index < tensor->count);
    struct tensor_string *element = (struct tensor_string *)tensor->data + index;
    char *copy = size ? alloc_bytes(size) : NULL;
    if (size)
        memcpy(copy, data, size);
    free(element->data);
    *element = (struct tensor_string){copy, size};
}

/* --- single elements of any number type --- */

#define ELEMENT(type) (((const type *)tensor->data)[index])

double tensor_number(const struct tensor *tensor, int64_t index)
{
    assert(index >= 0 && index < tensor->count);
    switch (tensor->dtype) {
    case F32:
        return ELEMENT(float);
    case F64:
        return ELEMENT(double);
    case F16:
        return dtype_f16_to_f32(ELEMENT(uint16_t));
    case BF16:
        return dtype_bf16_to_f32(ELEMENT(uint16_t));
    case U64:
        return (double)ELEMENT(uint64_t);
    default:
        return (double)tensor_integer(tensor, index);
    }
}

int64_t tensor_integer(const struct tensor *tensor, int64_t index)
{
    assert(index >= 0 && index < tensor->count);
    switch (tensor->dtype) {
    case I8:
    case QI8:
        return ELEMENT(int8_t);
    case U8:
    case QU8:
    case BOOL:
        return ELEMENT(uint8_t);
    case I16:
    case QI16:
        return ELEMENT(int16_t);
    case U16:
    case QU16:
        return ELEMENT(uint16_t);
    case I32:
    case QI32:
        return ELEMENT(int32_t);
    case U32:
        return ELEMENT(uint32_t);
    case I64:
    case U64:
        return ELEMENT(int64_t);
    case F32:
    case F64:
    case F16:
    case BF16:
        return (int64_t)tensor_number(tensor, index);
    default:
        assert(!"a number type");
        return 0;
    }
}

#undef ELEMENT
#define ELEMENT(type) (((type *)tensor->data)[index])

void tensor_set_number(struct tensor *tensor, int64_t index, double value)
{
    assert(index >= 0 && index < tensor->count);
    switch (tensor->dtype) {
    case F32:
        ELEMENT(float) = (float)value;
        return;
    case F64:
        ELEMENT(double) = value;
        return;
    case F16:
        ELEMENT(uint16_t) = dtype_f32_to_f16((float)value);
        return;
    case BF16:
        ELEMENT(uint16_t) = dtype_f32_to_bf16((float)value);
        return;
    case C64:
        ((float *)tensor->data)[2 * index] = (float)value;
        ((float *)tensor->data)[2 * index + 1] = 0;
        return;
    case C128:
        ((double *)tensor->data)[2 * index] = value;
        ((double *)tensor->data)[2 * index + 1] = 0;
        return;
    case I8:
    case QI8:
        ELEMENT(int8_t) = (int8_t)value;
        return;
    case U8:
    case QU8:
        ELEMENT(uint8_t) = (uint8_t)value;
        return;
    case BOOL:
        ELEMENT(uint8_t) = value != 0;
        return;
    case I16:
    case QI16:
        ELEMENT(int16_t) = (int16_t)value;
        return;
    case U16:
    case QU16:
        ELEMENT(uint16_t) = (uint16_t)value;
        return;
    case I32:
    case QI32:
        ELEMENT(int32_t) = (int32_t)value;
        return;
    case U32:
        ELEMENT(uint32_t) = (uint32_t)value;
        return;
    case I64:
        ELEMENT(int64_t) = (int64_t)value;
        return;
    case U64:
        ELEMENT(uint64_t) = (uint64_t)value;
        return;
    default:
        assert(!"a number type");
    }
}

#undef ELEMENT

static bool strings_equal(const struct tensor *a, const struct tensor *b)
{
    for (int64_t i = 0; i < a->count; i++) {
        const struct tensor_string *x = tensor_strings(a) + i;
        const struct tensor_string *y = tensor_strings(b) + i;
        if (x->size != y->size || (x->size && memcmp(x->data, y->data, x->size) != 0))
            return false;
    }
    return true;
}

bool tensor_equal(const struct tensor *a, const struct tensor *b)
{
    if (a->dtype != b->dtype || !shape_equal(&a->shape, &b->shape))
        return false;
    if (a->dtype == STRING)
        return strings_equal(a, b);
    size_t size = (size_t)a->count * tensor_element_bytes(a->dtype);
    return !size || a->data == b->data || !memcmp(a->data, b->data, size);
}
