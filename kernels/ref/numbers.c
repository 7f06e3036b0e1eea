/* numbers.c - elements of any type, read, written and moved. */

#include "kernels/ref/numbers.h"

#include "base/alloc.h"
#include "runtime/cancel.h"
#include "runtime/resource.h"

bool kernel_go_on(struct kernel_call *call, struct error *err)
{
    return !cancel_requested(kernel_cancel(call)) ||
           fail(err, CANCELLED, "the run was cancelled");
}

/* type number, storage, how to load, how to store */
#define REAL_TYPES(X) FLOAT_TYPES(X) INTEGER_TYPES(X)
#define FLOAT_TYPES(X)                                                                         \
    X(F32, float, , (float))                                                                   \
    X(F64, double, , )                                                                         \
    X(F16, uint16_t, dtype_f16_to_f32, dtype_f32_to_f16)                                       \
    X(BF16, uint16_t, dtype_bf16_to_f32, dtype_f32_to_bf16)
#define INTEGER_TYPES(X)                                                                       \
    X(I8, int8_t, (double), (int8_t)to_int32)                                                  \
    X(I16, int16_t, (double), (int16_t)to_int32)                                               \
    X(I32, int32_t, (double), to_int32)                                                        \
    X(I64, int64_t, (double), to_int64)                                                        \
    X(U8, uint8_t, (double), (uint8_t)to_int32)                                                \
    X(U16, uint16_t, (double), (uint16_t)to_int32)                                             \
    X(U32, uint32_t, (double), (uint32_t)to_int64)                                             \
    X(U64, uint64_t, (double), to_uint64)                                                      \
    X(BOOL, bool, (double), (bool))

/*
 * What does not fit becomes what the processor's own conversion makes of it (and TensorFlow
 * with it): the least number; in C it would be undefined.
 */
static int32_t to_int32(double value)
{
    return value > -2147483649.0 && value < 2147483648.0 ? (int32_t)value : INT32_MIN;
}

static int64_t to_int64(double value)
{
    return value >= -0x1p63 && value < 0x1p63 ? (int64_t)value : INT64_MIN;
}

static uint64_t to_uint64(double value)
{
    return value >= 0x1p63 && value < 0x1p64 ? (uint64_t)value : (uint64_t)to_int64(value);
}

#define LOAD(dtype, S, LOADER, STORER)                                                         \
    static double load_##dtype(const void *data, int64_t index)                                \
    {                                                                                          \
        return LOADER(((const S *)data)[index]);                                               \
    }
REAL_TYPES(LOAD)

#define STORE(dtype, S, LOADER, STORER)                                                        \
    static void store_##dtype(void *data, int64_t index, double value)                         \
    {                                                                                          \
        ((S *)data)[index] = STORER(value);                                                    \
    }
/* Rounded once: from double straight to the type of storage is not what the two halves do, but
 * their sums are kept in float precision or better. */
#define STORE_HALF(dtype, CONVERT)                                                             \
    static void store_##dtype(void *data, int64_t index, double value)                         \
    {                                                                                          \
        ((uint16_t *)data)[index] = CONVERT((float)value);                                     \
    }
STORE(F32, float, , (float))
STORE(F64, double, , )
STORE_HALF(F16, dtype_f32_to_f16)
STORE_HALF(BF16, dtype_f32_to_bf16)
INTEGER_TYPES(STORE)

#define LOAD_BITS(dtype, S, LOADER, STORER)                                                    \
    static uint64_t load_bits_##dtype(const void *data, int64_t index)                         \
    {                                                                                          \
        return (uint64_t)((const S *)data)[index];                                             \
    }
INTEGER_TYPES(LOAD_BITS)

#define STORE_BITS(dtype, S, LOADER, STORER)                                                   \
    static void store_bits_##dtype(void *data, int64_t index, uint64_t value)                  \
    {                                                                                          \
        ((S *)data)[index] = (S)value;                                                         \
    }
INTEGER_TYPES(STORE_BITS)

#define FLOAT_GREATER(dtype, S, LOADER, STORER)                                                \
    static bool greater_##dtype(const void *a, int64_t i, const void *b, int64_t j)            \
    {                                                                                          \
        return LOADER(((const S *)a)[i]) > LOADER(((const S *)b)[j]);                          \
    }
FLOAT_TYPES(FLOAT_GREATER)

#define GREATER(dtype, S, LOADER, STORER)                                                      \
    static bool greater_##dtype(const void *a, int64_t i, const void *b, int64_t j)            \
    {                                                                                          \
        return ((const S *)a)[i] > ((const S *)b)[j];                                          \
    }
INTEGER_TYPES(GREATER)

#define LOAD_ENTRY(dtype, S, LOADER, STORER) [dtype] = load_##dtype,
#define STORE_ENTRY(dtype, S, LOADER, STORER) [dtype] = store_##dtype,
#define LOAD_BITS_ENTRY(dtype, S, LOADER, STORER) [dtype] = load_bits_##dtype,
#define STORE_BITS_ENTRY(dtype, S, LOADER, STORER) [dtype] = store_bits_##dtype,
#define GREATER_ENTRY(dtype, S, LOADER, STORER) [dtype] = greater_##dtype,

kernel_load *kernel_load_for(enum dtype dtype)
{
    static kernel_load *const table[DTYPE_COUNT] = {REAL_TYPES(LOAD_ENTRY)};
    return table[dtype];
}

kernel_store *kernel_store_for(enum dtype dtype)
{
    static kernel_store *const table[DTYPE_COUNT] = {REAL_TYPES(STORE_ENTRY)};
    return table[dtype];
}

kernel_load_bits *kernel_load_bits_for(enum dtype dtype)
{
    static kernel_load_bits *const table[DTYPE_COUNT] = {INTEGER_TYPES(LOAD_BITS_ENTRY)};
    return table[dtype];
}

kernel_store_bits *kernel_store_bits_for(enum dtype dtype)
{
    static kernel_store_bits *const table[DTYPE_COUNT] = {INTEGER_TYPES(STORE_BITS_ENTRY)};
    return table[dtype];
}

kernel_greater *kernel_greater_for(enum dtype dtype)
{
    static kernel_greater *const table[DTYPE_COUNT] = {REAL_TYPES(GREATER_ENTRY)};
    return table[dtype];
}

double complex kernel_complex_at(const struct tensor *tensor, int64_t index)
{
    if (tensor->dtype == C64)
        return ((const float complex *)tensor->data)[index];
    if (tensor->dtype == C128)
        return ((const double complex *)tensor->data)[index];
    return kernel_load_for(tensor->dtype)(tensor->data, index);
}

void kernel_set_complex(struct tensor *tensor, int64_t index, double complex value)
{
    if (tensor->dtype == C64)
        ((float complex *)tensor->data)[index] = (float complex)value;
    else if (tensor->dtype == C128)
        ((double complex *)tensor->data)[index] = value;
    else
        kernel_store_for(tensor->dtype)(tensor->data, index, creal(value));
}

static void copy_handle(struct resource_handle *to, const struct resource_handle *from)
{
    if (from->resource)
        resource_ref(from->resource);
    resource_unref(to->resource);
    free(to->container);
    free(to->name);
    *to = (struct resource_handle){
        .resource = from->resource,
        .container = from->container ? alloc_text(from->container) : NULL,
        .name = from->name ? alloc_text(from->name) : NULL,
    };
}

void kernel_copy(struct tensor *to, int64_t to_index, const struct tensor *from,
                 int64_t from_index, int64_t count)
{
    assert(to->dtype == from->dtype);
    size_t size = dtype_size(to->dtype);
    if (size) {
        memcpy((char *)to->data + (size_t)to_index * size,
               (const char *)from->data + (size_t)from_index * size, (size_t)count * size);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        if (to->dtype == STRING) {
            const struct tensor_string *text = tensor_strings(from) + from_index + i;
            tensor_set_string(to, to_index + i, text->data, text->size);
        } else {
            assert(to->dtype == RESOURCE || to->dtype == VARIANT);
            copy_handle((struct resource_handle *)to->data + to_index + i,
                        (const struct resource_handle *)from->data + from_index + i);
        }
    }
}

void kernel_zero(struct tensor *to, int64_t index, int64_t count)
{
    size_t size = dtype_size(to->dtype);
    if (size)
        memset((char *)to->data + (size_t)index * size, 0, (size_t)count * size);
    for (int64_t i = 0; !size && to->dtype == STRING && i < count; i++)
        tensor_set_string(to, index + i, "", 0);
}

int64_t kernel_span(const struct shape *shape, int begin, int end)
{
    int64_t product = 1;
    for (int d = begin; d < end; d++)
        product *= shape->dims[d];
    return product;
}

bool kernel_append_dims(struct shape *shape, const struct shape *from, int first,
                        struct error *err)
{
    if (shape->rank + from->rank - first > LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "the result would have %d dimensions, at most %d",
                    shape->rank + from->rank - first, LIMIT_TENSOR_RANK);
    for (int d = first; d < from->rank; d++)
        shape->dims[shape->rank++] = from->dims[d];
    return true;
}

bool kernel_scalar(const struct kernel_call *call, int input, const char *what, int64_t *value,
                   struct error *err)
{
    const struct tensor *tensor = kernel_in(call, input);
    char text[SHAPE_TEXT_BYTES];
    if (tensor->shape.rank != 0)
        return fail(err, INVALID, "%s must be a scalar, got shape %s", what,
                    shape_text(&tensor->shape, text, sizeof(text)));
    *value = tensor_integer(tensor, 0);
    return true;
}

const char *kernel_row_text(const struct tensor *indices, int64_t row, int depth,
                            const char *between, char *out, size_t size)
{
    size_t used = 0;
    for (int d = 0; d < depth && used < size; d++)
        used += (size_t)snprintf(out + used, size - used, "%s%lld", d ? between : "[",
                                 (long long)tensor_integer(indices, row * depth + d));
    if (used < size)
        (void)snprintf(out + used, size - used, depth ? "]" : "[]");
    return out;
}

bool kernel_fail_order(struct error *err, int64_t row, const char *text, bool repeated)
{
    return fail(err, INVALID, "indices[%lld] = %s is %s", (long long)row, text,
                repeated ? "repeated"
                         : "out of order. Many sparse ops require sorted indices.\n"
                           "    Use `tf.sparse.reorder` to create a correctly ordered copy."
                           "\n\n");
}

bool kernel_axis(const struct kernel_call *call, int input, int rank, int *axis,
                 struct error *err)
{
    int64_t value;
    return kernel_scalar(call, input, "axis", &value, err) &&
           kernel_axis_at(value, rank, axis, err);
}

bool kernel_scan_axis(const struct kernel_call *call, int input, int rank, int *axis,
                      struct error *err)
{
    const struct tensor *in = kernel_in(call, input);
    char text[SHAPE_TEXT_BYTES];
    if (in->shape.rank)
        return fail(err, INVALID, "ScanOp: axis must be a scalar, not %s",
                    shape_text(&in->shape, text, sizeof(text)));
    int64_t value = tensor_integer(in, 0);
    value += value < 0 ? rank : 0; /* which is what TensorFlow tells, too */
    if (value < 0 || value >= rank)
        return fail(err, INVALID,
                    "ScanOp: Expected scan axis in the range [%d, %d), but got %lld", -rank,
                    rank, (long long)value);
    *axis = (int)value;
    return true;
}

bool kernel_axis_at(int64_t value, int rank, int *axis, struct error *err)
{
    if (value < -rank || value >= rank)
        return fail(err, INVALID, "axis %lld is not in the range [%d, %d)", (long long)value,
                    -rank, rank);
    *axis = (int)(value < 0 ? value + rank : value);
    return true;
}

bool kernel_same_shape(const struct kernel_call *call, int first, int second, struct error *err)
{
    const struct shape *one = &kernel_in(call, first)->shape;
    const struct shape *other = &kernel_in(call, second)->shape;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    return shape_equal(one, other) ||
           fail(err, INVALID,
                "Inputs to operation %s of type %s must have the same size and shape.  Input "
                "%d: %s != input %d: %s",
                call->node->name, call->node->op->name, first, shape_text(one, a, sizeof(a)),
                second, shape_text(other, b, sizeof(b)));
}

bool kernel_shape_in(const struct kernel_call *call, int input, struct shape *shape,
                     struct error *err)
{
    const struct tensor *tensor = kernel_in(call, input);
    char text[SHAPE_TEXT_BYTES];
    if (tensor->shape.rank > 1)
        return fail(err, INVALID, "shape must be a vector of {int32,int64}, got shape %s",
                    shape_text(&tensor->shape, text, sizeof(text)));
    return kernel_shape_of(tensor, shape, err);
}

bool kernel_shape_of(const struct tensor *tensor, struct shape *shape, struct error *err)
{
    if (tensor->count > LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "a shape of %lld dimensions, at most %d",
                    (long long)tensor->count, LIMIT_TENSOR_RANK);
    shape->rank = (int)tensor->count;
    for (int d = 0; d < shape->rank; d++) {
        shape->dims[d] = tensor_integer(tensor, d);
        if (shape->dims[d] < 0)
            return fail(err, INVALID, "Dimension %lld must be >= 0", (long long)shape->dims[d]);
    }
    if (shape_count(shape) < 0)
        return fail(err, INVALID, "a shape with too many elements");
    return true;
}
