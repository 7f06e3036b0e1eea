/* attr.c - copying and comparing attributes. */

#include "runtime/attr.h"
#include "base/arena.h"
#include "runtime/tensor.h"

static size_t value_size(enum attr_kind kind)
{
    switch (kind) {
    case ATTR_STRING:
    case ATTR_PLACEHOLDER:
        return sizeof(struct attr_bytes);
    case ATTR_INT:
        return sizeof(int64_t);
    case ATTR_FLOAT:
        return sizeof(float);
    case ATTR_BOOL:
        return sizeof(bool);
    case ATTR_TYPE:
        return sizeof(int);
    case ATTR_SHAPE:
        return sizeof(struct shape);
    case ATTR_TENSOR:
        return sizeof(struct tensor);
    case ATTR_FUNC:
        return sizeof(struct attr_func);
    case ATTR_NONE:
        break;
    }
    return 0;
}

/*
 * Attributes of functions are copied flat: their own attributes are reached again, one level
 * for each level that the message had, which LIMIT_MESSAGE_DEPTH bounds.
 */
struct attr attr_copy(const struct attr *attr, struct arena *arena)
{
    struct attr copy = *attr;
    copy.name = arena_text(arena, attr->name);
    size_t size = value_size(attr->kind) * (size_t)attr->count;
    if (!size) {
        copy.any = NULL;
        return copy;
    }
    void *values = arena_copy(arena, attr->any, size);
    copy.any = values;

    if (attr->kind == ATTR_STRING || attr->kind == ATTR_PLACEHOLDER) {
        struct attr_bytes *strings = values;
        for (int i = 0; i < attr->count; i++)
            strings[i].data = arena_text_n(arena, strings[i].data, strings[i].size);
    } else if (attr->kind == ATTR_TENSOR) {
        struct tensor *tensors = values;
        for (int i = 0; i < attr->count; i++)
            tensor_share(&tensors[i], &attr->tensors[i]);
    } else if (attr->kind == ATTR_FUNC) {
        struct attr_func *funcs = values;
        for (int i = 0; i < attr->count; i++) {
            struct attr *attrs =
                arena_array(arena, (size_t)funcs[i].attrs_count, sizeof(*attrs));
            for (int k = 0; k < funcs[i].attrs_count; k++)
                attrs[k] = attr_copy(&funcs[i].attrs[k], arena);
            funcs[i].name = arena_text(arena, funcs[i].name);
            funcs[i].attrs = attrs;
        }
    }
    return copy;
}

void attr_release(const struct attr *attr)
{
    for (int i = 0; attr->kind == ATTR_TENSOR && i < attr->count; i++)
        buffer_unref(attr->tensors[i].buffer);
    for (int i = 0; attr->kind == ATTR_FUNC && i < attr->count; i++)
        for (int k = 0; k < attr->funcs[i].attrs_count; k++)
            attr_release(&attr->funcs[i].attrs[k]);
}

static bool funcs_equal(const struct attr_func *a, const struct attr_func *b)
{
    if (strcmp(a->name, b->name) != 0 || a->attrs_count != b->attrs_count)
        return false;
    for (int i = 0; i < a->attrs_count; i++)
        if (!attr_equal(&a->attrs[i], &b->attrs[i]))
            return false;
    return true;
}

static bool value_equal(const struct attr *a, const struct attr *b, int i)
{
    switch (a->kind) {
    case ATTR_STRING:
    case ATTR_PLACEHOLDER:
        return a->strings[i].size == b->strings[i].size &&
               !memcmp(a->strings[i].data, b->strings[i].data, a->strings[i].size);
    case ATTR_INT:
        return a->ints[i] == b->ints[i];
    case ATTR_FLOAT: /* bits, so that NaN equals NaN and 0 differs from -0 */
        return !memcmp(&a->floats[i], &b->floats[i], sizeof(float));
    case ATTR_BOOL:
        return a->bools[i] == b->bools[i];
    case ATTR_TYPE:
        return a->types[i] == b->types[i];
    case ATTR_SHAPE:
        return shape_equal(&a->shapes[i], &b->shapes[i]);
    case ATTR_TENSOR:
        return tensor_equal(&a->tensors[i], &b->tensors[i]);
    case ATTR_FUNC:
        return funcs_equal(&a->funcs[i], &b->funcs[i]);
    case ATTR_NONE:
        break;
    }
    return true;
}

bool attr_equal(const struct attr *a, const struct attr *b)
{
    if (strcmp(a->name, b->name) != 0 || a->kind != b->kind || a->is_list != b->is_list ||
        a->count != b->count)
        return false;
    for (int i = 0; i < a->count; i++)
        if (!value_equal(a, b, i))
            return false;
    return true;
}
