/* tensor_array.c - arrays of tensors: their elements, and those of their gradients. */

#include "kernels/state/tensor_array.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "kernels/ref/numbers.h"
#include "kernels/ref/update.h"

#define TENSOR_ARRAY "tensor array"

/*
 * A tensor of no type stands for zeros of its shape, which are made when it is read: so an
 * array of gradients knows its shapes and holds nothing.
 */
struct item {
    struct tensor tensor;
    bool written;
    bool read;
    bool cleared;
};

struct tensor_array {
    struct resource resource;
    struct tensor_array_options options; /* but for the shape, fixed */
    bool is_grad;
    struct tensor_array *next; /* in the list of another's gradients, owned by it */
    char *source;

    pthread_mutex_t lock; /* guards: all below, the element shape, dynamic_size */
    struct item *items;
    int64_t count;
    int64_t capacity;
    int64_t marked_size; /* -1: nothing was scattered or split */
    bool aggregated;     /* several writes to one element: it has no gradient */
    bool closed;
    struct tensor_array *grads;
};

static void release_items(struct item *items, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        tensor_release(&items[i].tensor);
    free(items);
}

static void array_destroy(struct resource *resource)
{
    struct tensor_array *array = (struct tensor_array *)resource;
    while (array->grads) {
        struct tensor_array *next = array->grads->next;
        resource_unref(&array->grads->resource);
        array->grads = next;
    }
    release_items(array->items, array->count);
    pthread_mutex_destroy(&array->lock);
    free((char *)array->options.name);
    free(array->source);
    free(array);
}

/* Room for `count` elements; nothing changes when it fails. */
static bool resize(struct tensor_array *array, int64_t count, struct error *err)
{
    if (count > LIMIT_LIST_ITEMS)
        return fail(err, EXHAUSTED, "TensorArray %s: %lld elements, at most %d are possible",
                    array->options.name, (long long)count, LIMIT_LIST_ITEMS);
    if (count > array->capacity) {
        int64_t capacity = 2 * array->capacity > count ? 2 * array->capacity : count;
        struct item *items = calloc((size_t)capacity, sizeof(*items));
        if (!items)
            return fail(err, EXHAUSTED, "OOM when making TensorArray %s with %lld elements",
                        array->options.name, (long long)count);
        if (array->count)
            memcpy(items, array->items, (size_t)array->count * sizeof(*items));
        free(array->items);
        array->items = items;
        array->capacity = capacity;
    }
    if (count > array->count)
        array->count = count;
    return true;
}

struct tensor_array *kernel_tensor_array_new(const struct tensor_array_options *options,
                                             int64_t size, struct error *err)
{
    if (size < 0)
        return fail_null(err, INVALID, "Size should be >= 0.");
    struct tensor_array *array = alloc_bytes(sizeof(*array));
    array->resource =
        (struct resource){.kind = TENSOR_ARRAY, .references = 1, .destroy = array_destroy};
    array->options = *options;
    array->options.name = alloc_text(options->name);
    array->marked_size = -1;
    pthread_mutex_init(&array->lock, NULL);
    if (!resize(array, size, err)) {
        resource_unref(&array->resource);
        return NULL;
    }
    return array;
}

struct tensor_array *kernel_tensor_array(struct kernel_call *call, struct error *err)
{
    return (struct tensor_array *)kernel_resource(call, 0, TENSOR_ARRAY, err);
}

struct tensor_array *kernel_tensor_array_of(struct kernel_call *call, enum dtype dtype,
                                            struct error *err)
{
    struct tensor_array *array = kernel_tensor_array(call, err);
    if (!array || array->options.dtype == dtype)
        return array;
    fail(err, INVALID, "TensorArray dtype is %s but Op is of dtype %s.",
         dtype_name(array->options.dtype), dtype_name(dtype));
    kernel_tensor_array_unref(array);
    return NULL;
}

void kernel_tensor_array_unref(struct tensor_array *array)
{
    resource_unref(&array->resource);
}

bool kernel_tensor_array_output(struct kernel_call *call, struct tensor_array *array,
                                struct error *err)
{
    return kernel_output_resource(call, 0, &array->resource,
                                  array->is_grad ? "_tensor_array_grads" : "_tensor_arrays",
                                  array->options.name, err);
}

const char *kernel_tensor_array_name(const struct tensor_array *array)
{
    return array->options.name;
}

static bool check_open_locked(const struct tensor_array *array, struct error *err)
{
    return !array->closed ||
           fail(err, INVALID, "TensorArray %s has already been closed.", array->options.name);
}

/* --- writing --- */

static bool fail_write(const struct tensor_array *array, int64_t index, const char *why,
                       struct error *err)
{
    return fail(err, INVALID, "TensorArray %s: Could not write to TensorArray index %lld %s.",
                array->options.name, (long long)index, why);
}

static bool check_write_locked(struct tensor_array *array, int64_t index,
                               const struct tensor *value, struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (!check_open_locked(array, err))
        return false;
    if (index < 0 || (!array->options.dynamic_size && index >= array->count))
        return fail(err, INVALID,
                    "TensorArray %s: Tried to write to index %lld but array is not resizeable "
                    "and size is: %lld",
                    array->options.name, (long long)index, (long long)array->count);
    if (!resize(array, index + 1, err))
        return false;
    if (value->dtype != array->options.dtype)
        return fail(err, INVALID,
                    "TensorArray %s: Could not write to TensorArray index %lld because the "
                    "value dtype is %s but TensorArray dtype is %s.",
                    array->options.name, (long long)index, dtype_name(value->dtype),
                    dtype_name(array->options.dtype));
    if (!shape_compatible(&array->options.element_shape, &value->shape))
        return fail(err, INVALID,
                    "TensorArray %s: Could not write to TensorArray index %lld because the "
                    "value shape is %s which is incompatible with the TensorArray's inferred "
                    "element shape: %s (consider setting infer_shape=False).",
                    array->options.name, (long long)index,
                    shape_text(&value->shape, a, sizeof(a)),
                    shape_text(&array->options.element_shape, b, sizeof(b)));
    const struct item *item = &array->items[index];
    if (item->read)
        return fail_write(array, index, "because it has already been read", err);
    return array->is_grad || !item->written ||
           fail_write(array, index, "because it has already been written to", err);
}

/* Adds to what is there, in a copy unless nobody else sees it. */
static bool add_locked(struct tensor_array *array, int64_t index, struct tensor *value,
                       struct error *err)
{
    struct tensor *there = &array->items[index].tensor;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (!shape_equal(&there->shape, &value->shape))
        return fail(err, INVALID,
                    "TensorArray %s: Could not aggregate to TensorArray index %lld because the "
                    "existing shape is %s but the new input shape is %s.",
                    array->options.name, (long long)index,
                    shape_text(&there->shape, a, sizeof(a)),
                    shape_text(&value->shape, b, sizeof(b)));
    if (there->dtype == DTYPE_NONE || there->count == 0) {
        tensor_release(there);
        *there = *value;
        *value = (struct tensor){0};
        return true;
    }
    if (!(BIT(value->dtype) & DTYPES_NUMBER))
        return fail(err, INVALID, "TensorArray %s: elements of type %s cannot be added up",
                    array->options.name, dtype_name(value->dtype));
    if (!tensor_is_exclusive(there)) {
        struct tensor copy;
        if (!tensor_clone(&copy, there, err))
            return false;
        tensor_release(there);
        *there = copy;
    }
    kernel_add_into(there, value, false);
    array->aggregated = true;
    return true;
}

bool kernel_tensor_array_write(struct tensor_array *array, int64_t index, struct tensor *value,
                               struct error *err)
{
    pthread_mutex_lock(&array->lock);
    bool ok = check_write_locked(array, index, value, err);
    if (ok && array->options.identical_element_shapes)
        array->options.element_shape = value->shape;
    if (ok && array->items[index].written) {
        ok = add_locked(array, index, value, err);
    } else if (ok) {
        array->items[index].tensor = *value;
        array->items[index].written = true;
        *value = (struct tensor){0};
    }
    pthread_mutex_unlock(&array->lock);
    tensor_release(value);
    return ok;
}

/* --- reading --- */

static bool make_zeros(enum dtype dtype, struct tensor *tensor, struct error *err)
{
    struct tensor zeros;
    if (!(BIT(dtype) & (DTYPES_NUMBER | BIT(BOOL))))
        return fail(err, INVALID, "there are no zeros of type %s to be read",
                    dtype_name(dtype));
    if (!tensor_init(&zeros, dtype, &tensor->shape, err))
        return false;
    kernel_zero(&zeros, 0, zeros.count);
    tensor_release(tensor);
    *tensor = zeros;
    return true;
}

/* An element that nobody wrote is zeros, if it is known of which shape. */
static bool fill_in_locked(struct tensor_array *array, int64_t index, struct error *err)
{
    const struct shape *shape = &array->options.element_shape;
    char text[SHAPE_TEXT_BYTES];
    if (!shape_is_full(shape))
        return fail(err, INVALID,
                    "TensorArray %s: Could not read from TensorArray index %lld.  Furthermore, "
                    "the element shape is not fully defined: %s.  It is possible you are "
                    "working with a resizeable TensorArray and stop_gradients is not allowing "
                    "the gradients to be written.  If you set the full element_shape property "
                    "on the forward TensorArray, the proper all-zeros tensor will be returned "
                    "instead of incurring this error.",
                    array->options.name, (long long)index,
                    shape_text(shape, text, sizeof(text)));
    int64_t before = array->count;
    if (!resize(array, index + 1, err))
        return false;
    for (int64_t i = index < before ? index : before; i <= index; i++) {
        array->items[i].tensor.shape = *shape;
        array->items[i].written = true;
    }
    return true;
}

static bool read_locked(struct tensor_array *array, int64_t index, struct tensor *value,
                        struct error *err)
{
    if (!check_open_locked(array, err))
        return false;
    if (index < 0 || (!array->is_grad && index >= array->count))
        return fail(err, INVALID, "Tried to read from index %lld but array size is: %lld",
                    (long long)index, (long long)array->count);
    bool written = index < array->count && array->items[index].written;
    if (!written && !fill_in_locked(array, index, err))
        return false;
    struct item *item = &array->items[index];
    if (item->cleared)
        return fail(err, INVALID,
                    "TensorArray %s: Could not read index %lld twice because it was cleared "
                    "after a previous read (perhaps try setting clear_after_read = false?).",
                    array->options.name, (long long)index);
    if (item->tensor.dtype == DTYPE_NONE &&
        !make_zeros(array->options.dtype, &item->tensor, err))
        return false;
    tensor_share(value, &item->tensor);
    item->read = true;
    if (array->options.clear_after_read) {
        tensor_release(&item->tensor);
        item->cleared = true;
    }
    return true;
}

bool kernel_tensor_array_read(struct tensor_array *array, int64_t index, struct tensor *value,
                              struct error *err)
{
    pthread_mutex_lock(&array->lock);
    bool ok = read_locked(array, index, value, err);
    pthread_mutex_unlock(&array->lock);
    return ok;
}

/* --- the whole --- */

bool kernel_tensor_array_look(struct tensor_array *array, struct tensor_array_state *state,
                              struct error *err)
{
    pthread_mutex_lock(&array->lock);
    bool ok = check_open_locked(array, err);
    *state = (struct tensor_array_state){
        .size = array->count,
        .concat_size =
            array->is_grad && array->marked_size >= 0 ? array->marked_size : array->count,
        .dynamic_size = array->options.dynamic_size,
        .element_shape = array->options.element_shape,
    };
    pthread_mutex_unlock(&array->lock);
    return ok;
}

void kernel_tensor_array_mark(struct tensor_array *array, int64_t size)
{
    pthread_mutex_lock(&array->lock);
    if (!array->is_grad)
        array->marked_size = size;
    pthread_mutex_unlock(&array->lock);
}

bool kernel_tensor_array_set_shape(struct tensor_array *array, const struct shape *shape,
                                   struct error *err)
{
    struct shape merged;
    pthread_mutex_lock(&array->lock);
    bool ok = shape_merge(&array->options.element_shape, shape, &merged, err);
    if (ok)
        array->options.element_shape = merged;
    pthread_mutex_unlock(&array->lock);
    return ok;
}

void kernel_tensor_array_close(struct tensor_array *array)
{
    pthread_mutex_lock(&array->lock);
    struct item *items = array->items;
    int64_t count = array->count;
    array->items = NULL;
    array->count = array->capacity = 0;
    array->closed = true;
    pthread_mutex_unlock(&array->lock);
    release_items(items, count);
}

/* --- gradients --- */

/* What stands before the elements' shape, and that; the rank may be over the limit. */
static bool with_prefix(const struct shape *prefix, const struct shape *shape,
                        struct shape *out, struct error *err)
{
    *out = *shape;
    if (!prefix || shape->rank < 0)
        return true;
    *out = *prefix;
    return kernel_append_dims(out, shape, 0, err);
}

static struct tensor_array *make_grad_locked(struct tensor_array *array, const char *source,
                                             const struct shape *prefix, struct error *err)
{
    struct tensor_array_options options = array->options;
    if (array->aggregated)
        return fail_null(err, INVALID,
                         "Unable to create a gradients TensorArray for %s.  Perhaps you used "
                         "the multiple_writes_aggregate flag on a previous write?  Gradient "
                         "calculation is impossible when multiple writes are performed to the "
                         "same index.",
                         options.name);
    if (!with_prefix(prefix, &array->options.element_shape, &options.element_shape, err))
        return NULL;
    options.dynamic_size = false;
    options.clear_after_read = true;
    char *name = alloc_printf("%s@%s", array->options.name, source);
    options.name = name;
    struct tensor_array *grad = kernel_tensor_array_new(&options, array->count, err);
    free(name);
    if (!grad)
        return NULL;
    grad->is_grad = true;
    grad->marked_size = array->marked_size;
    grad->source = alloc_text(source);
    bool ok = true;
    for (int64_t i = 0; ok && i < array->count; i++) {
        if (!array->items[i].written)
            continue;
        ok = with_prefix(prefix, &array->items[i].tensor.shape, &grad->items[i].tensor.shape,
                         err);
        grad->items[i].written = true;
    }
    if (!ok) {
        resource_unref(&grad->resource);
        return NULL;
    }
    return grad;
}

struct tensor_array *kernel_tensor_array_grad(struct tensor_array *array, const char *source,
                                              const struct shape *prefix, struct error *err)
{
    struct tensor_array *grad = NULL;
    pthread_mutex_lock(&array->lock);
    bool open = check_open_locked(array, err);
    array->options.dynamic_size = false;
    for (grad = open ? array->grads : NULL; grad; grad = grad->next)
        if (strcmp(grad->source, source) == 0)
            break;
    if (open && !grad) {
        grad = make_grad_locked(array, source, prefix, err);
        if (grad) {
            grad->next = array->grads;
            array->grads = grad;
        }
    }
    if (grad)
        resource_ref(&grad->resource);
    pthread_mutex_unlock(&array->lock);
    return grad;
}
