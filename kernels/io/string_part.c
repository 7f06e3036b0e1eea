/* string_part.c - substrings by position and length, in bytes or characters. */

#include "kernels/ref/move.h"

/* Of a string in an error text. */
enum { QUOTED_MAX = 200 };

/* The first byte begins a character whatever it is. */
static bool begins(const struct tensor_string *text, size_t k)
{
    return k == 0 || (text->data[k] & 0xc0) != 0x80;
}

/* Where character `index` of UTF-8 text begins; its end for the first beyond, -1 for more. */
static int64_t character_at(const struct tensor_string *text, int64_t index)
{
    int64_t count = 0;
    for (size_t k = 0; k < text->size; k++)
        if (begins(text, k) && count++ == index)
            return (int64_t)k;
    return index == count ? (int64_t)text->size : -1;
}

static int64_t characters(const struct tensor_string *text)
{
    int64_t count = 0;
    for (size_t k = 0; k < text->size; k++)
        count += begins(text, k);
    return count;
}

/* Bytes [from, to) for `length` units from `position` on, from the end if that is negative. */
static bool find(const struct tensor_string *text, bool utf8, int64_t position, int64_t length,
                 int64_t *from, int64_t *to)
{
    int64_t total = utf8 ? characters(text) : (int64_t)text->size;
    if (position < -total || position > total)
        return false;
    if (position < 0) {
        position += total;
        /* Characters are counted back from the end: beyond the front, of a negative length. */
        if (utf8 && length < -position)
            return false;
    }
    int64_t end = length > total - position ? total : position + length;
    if (length < 0)
        end = utf8 ? position : total;
    *from = utf8 ? character_at(text, position) : position;
    *to = utf8 ? character_at(text, end) : end;
    return true;
}

static bool check(const struct kernel_call *call, struct shape *shape, struct error *err)
{
    const struct shape *in = &kernel_in(call, 0)->shape, *pos = &kernel_in(call, 1)->shape;
    const struct shape *len = &kernel_in(call, 2)->shape;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (!shape_equal(pos, len))
        return fail(err, INVALID, "pos and len should have the same shape, got: %s vs. %s",
                    shape_text(pos, a, sizeof(a)), shape_text(len, b, sizeof(b)));
    if (!shape_broadcast(in, pos, shape, err))
        return false;
    bool plain = pos->rank == 0 || shape_equal(in, pos);
    if (!plain && shape->rank > 2)
        return fail(err, UNIMPLEMENTED, "Substr broadcast not implemented for %d dimensions",
                    shape->rank);
    return true;
}

/* Bytes are quoted, characters are not; of a broadcast, row and column are told, or the row. */
static bool bad_position(const struct tensor_string *text, bool utf8, int64_t position,
                         const struct shape *shape, bool broadcast, int64_t i,
                         struct error *err)
{
    bool matrix = broadcast && shape->rank == 2;
    long long row = matrix ? i / shape->dims[1] : i, column = matrix ? i % shape->dims[1] : 0;
    if (utf8)
        return fail(err, INVALID, "pos %lld out of range for string at index %lld",
                    (long long)position, row);
    int size = (int)(text->size < QUOTED_MAX ? text->size : QUOTED_MAX);
    const char *data = text->data ? text->data : "";
    if (matrix)
        return fail(err, INVALID,
                    "pos %lld out of range for string b'%.*s' at index (%lld, %lld)",
                    (long long)position, size, data, row, column);
    return fail(err, INVALID, "pos %lld out of range for string b'%.*s' at index %lld",
                (long long)position, size, data, row);
}

static bool run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *pos = kernel_in(call, 1);
    const struct tensor *len = kernel_in(call, 2);
    bool utf8 = strcmp(node_attr_string(call->node, "unit", "BYTE"), "BYTE") != 0;
    struct shape shape;
    if (!check(call, &shape, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    struct places texts = kernel_broadcast_places(&in->shape, &shape);
    bool broadcast = pos->shape.rank != 0 && !shape_equal(&in->shape, &pos->shape);
    struct places positions = kernel_broadcast_places(&pos->shape, &shape);
    for (int64_t i = 0; i < out->count; i++) {
        const struct tensor_string *text = tensor_strings(in) + kernel_place(&texts, &shape, i);
        int64_t at = kernel_place(&positions, &shape, i), from, to;
        int64_t position = tensor_integer(pos, at);
        if (!find(text, utf8, position, tensor_integer(len, at), &from, &to))
            return bad_position(text, utf8, position, &shape, broadcast, i, err);
        tensor_set_string(out, i, text->data ? text->data + from : "", (size_t)(to - from));
    }
    return true;
}

const struct kernel kernel_substr = {.op = "Substr", .device = CPU, .run = run};
