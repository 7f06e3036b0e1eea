/* tensor.c - tensors that the caller owns. */

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "capi/internal.h"

size_t ty_dtype_size(enum ty_dtype dtype)
{
    return dtype_known((int)dtype) ? dtype_size((int)dtype) : 0;
}

bool capi_shape(struct shape *shape, const int64_t *dims, int rank, bool partly,
                struct error *err)
{
    *shape = SHAPE_UNKNOWN;
    if (rank < (partly ? -1 : 0) || rank > LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "a rank of %d: allowed are %d to %d", rank, partly ? -1 : 0,
                    LIMIT_TENSOR_RANK);
    shape->rank = rank;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < (partly ? -1 : 0))
            return fail(err, INVALID, "dimension %d is %lld", i, (long long)dims[i]);
        shape->dims[i] = dims[i];
    }
    return true;
}

static struct ty_tensor *make(enum ty_dtype dtype, const int64_t *dims, int rank,
                              struct error *err)
{
    struct shape shape;
    struct tensor tensor;
    if (!dtype_known((int)dtype) || dtype_is_ref((int)dtype))
        return fail_null(err, INVALID, "%d is not a type of tensors", (int)dtype);
    if (!capi_shape(&shape, dims, rank, false, err) ||
        !tensor_init(&tensor, (enum dtype)dtype, &shape, err))
        return NULL;
    struct ty_tensor *made = alloc_bytes(sizeof(*made));
    made->tensor = tensor;
    return made;
}

struct ty_tensor *ty_tensor_new(enum ty_dtype dtype, const int64_t *dims, int rank,
                                struct ty_status *status)
{
    struct error err;
    struct ty_tensor *made = make(dtype, dims, rank, &err);
    capi_result(status, made, &err);
    return made;
}

/* The number of bytes must be what the elements take. */
static bool check_size(const struct tensor *tensor, size_t size, struct error *err)
{
    size_t wanted = dtype_size(tensor->dtype) * (size_t)tensor->count;
    if (!dtype_size(tensor->dtype))
        return fail(err, INVALID, "elements of type %s are not plain bytes",
                    dtype_name(tensor->dtype));
    return size == wanted ||
           fail(err, INVALID, "%zu bytes were given, the tensor has %zu", size, wanted);
}

struct ty_tensor *ty_tensor_new_copy(enum ty_dtype dtype, const int64_t *dims, int rank,
                                     const void *data, size_t size, struct ty_status *status)
{
    struct error err;
    struct ty_tensor *made = make(dtype, dims, rank, &err);
    bool ok = made && check_size(&made->tensor, size, &err);
    if (ok && size)
        memcpy(made->tensor.data, data, size);
    capi_result(status, ok, &err);
    if (!ok)
        ty_tensor_free(made);
    return ok ? made : NULL;
}

/* Memory of the caller's behind a buffer. */
struct lent {
    struct buffer buffer;
    void (*release)(void *data, void *arg);
    void *arg;
};

static void give_back(struct buffer *buffer)
{
    struct lent *lent = (struct lent *)buffer;
    if (lent->release)
        lent->release(buffer->data, lent->arg);
    free(lent);
}

struct ty_tensor *ty_tensor_new_over(enum ty_dtype dtype, const int64_t *dims, int rank,
                                     void *data, size_t size,
                                     void (*release)(void *data, void *arg), void *arg,
                                     struct ty_status *status)
{
    struct shape shape;
    struct error err;
    bool in_place = (uintptr_t)data % TENSOR_ALIGN == 0 && dtype_known((int)dtype) &&
                    capi_shape(&shape, dims, rank, false, &err) && shape_count(&shape) >= 0 &&
                    ty_dtype_size(dtype);
    if (!in_place) {
        struct ty_tensor *copy = ty_tensor_new_copy(dtype, dims, rank, data, size, status);
        if (release)
            release(data, arg);
        return copy;
    }
    struct lent *lent = alloc_bytes(sizeof(*lent));
    *lent = (struct lent){
        .buffer = {.references = 1, .data = data, .size = size, .destroy = give_back},
        .release = release,
        .arg = arg};
    struct ty_tensor *made = alloc_bytes(sizeof(*made));
    tensor_init_foreign(&made->tensor, (enum dtype)dtype, &shape, &lent->buffer);
    bool ok = check_size(&made->tensor, size, &err);
    capi_result(status, ok, &err);
    if (!ok)
        ty_tensor_free(made);
    return ok ? made : NULL;
}

void ty_tensor_free(struct ty_tensor *tensor)
{
    if (!tensor)
        return;
    tensor_release(&tensor->tensor);
    free(tensor);
}

enum ty_dtype ty_tensor_dtype(const struct ty_tensor *tensor)
{
    return (enum ty_dtype)tensor->tensor.dtype;
}

int ty_tensor_rank(const struct ty_tensor *tensor)
{
    return tensor->tensor.shape.rank;
}

int64_t ty_tensor_dim(const struct ty_tensor *tensor, int index)
{
    assert(index >= 0 && index < tensor->tensor.shape.rank);
    return tensor->tensor.shape.dims[index];
}

int64_t ty_tensor_count(const struct ty_tensor *tensor)
{
    return tensor->tensor.count;
}

void *ty_tensor_data(const struct ty_tensor *tensor)
{
    assert(tensor->tensor.dtype != STRING);
    return tensor->tensor.data;
}

size_t ty_tensor_size(const struct ty_tensor *tensor)
{
    return dtype_size(tensor->tensor.dtype) * (size_t)tensor->tensor.count;
}

void ty_tensor_set_string(struct ty_tensor *tensor, int64_t index, const char *data,
                          size_t size)
{
    assert(tensor->tensor.dtype == STRING);
    assert(index >= 0 && index < tensor->tensor.count);
    tensor_set_string(&tensor->tensor, index, data, size);
}

const char *ty_tensor_string(const struct ty_tensor *tensor, int64_t index, size_t *size)
{
    assert(index >= 0 && index < tensor->tensor.count);
    const struct tensor_string *string = &tensor_strings(&tensor->tensor)[index];
    *size = string->size;
    return string->size ? string->data : "";
}
