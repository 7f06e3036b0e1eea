/* string_split.c - strings cut into parts: a sparse matrix with a row of parts for each. */

#include "kernels/ref/numbers.h"

#include "base/alloc.h"

/* Where the parts are in the string they were cut from. */
struct part {
    const char *data;
    size_t size;
};

struct parts {
    struct part *items;
    int count, capacity;
};

static void add(struct parts *parts, const char *data, size_t size)
{
    parts->items =
        alloc_grow(parts->items, parts->count, &parts->capacity, sizeof(struct part));
    parts->items[parts->count++] = (struct part){data, size};
}

typedef void cut(struct parts *parts, const struct tensor_string *text,
                 const struct tensor_string *by, int64_t limit);

/* At each byte that is in `by`; between all bytes if that is empty.  No text, no parts. */
static void cut_at_set(struct parts *parts, const struct tensor_string *text,
                       const struct tensor_string *by, bool skip_empty)
{
    size_t start = 0;
    for (size_t i = 0; by->size == 0 && i < text->size; i++)
        add(parts, text->data + i, 1);
    for (size_t i = 0; by->size && text->size && i <= text->size; i++) {
        if (i < text->size && !memchr(by->data, text->data[i], by->size))
            continue;
        if (i > start || !skip_empty)
            add(parts, text->data + start, i - start);
        start = i + 1;
    }
}

static void cut_at_set_skipping(struct parts *parts, const struct tensor_string *text,
                                const struct tensor_string *by, int64_t limit)
{
    (void)limit;
    cut_at_set(parts, text, by, true);
}

static void cut_at_set_keeping(struct parts *parts, const struct tensor_string *text,
                               const struct tensor_string *by, int64_t limit)
{
    (void)limit;
    cut_at_set(parts, text, by, false);
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* At runs of blanks, at most `limit` times (below 0: everywhere); what is left is the last
 * part.
 */
static void cut_at_blanks(struct parts *parts, const struct tensor_string *text, int64_t limit)
{
    size_t i = 0;
    int before = parts->count;
    for (int64_t cuts = 0; i < text->size; cuts++) {
        while (i < text->size && is_blank(text->data[i]))
            i++;
        if (limit > 0 && cuts == limit) {
            add(parts, text->data + i, text->size - i);
            return;
        }
        size_t start = i;
        while (i < text->size && !is_blank(text->data[i]))
            i++;
        if (i > start)
            add(parts, text->data + start, i - start);
    }
    if (limit > 0 && parts->count - before == limit)
        add(parts, "", 0);
}

/* As Python's str.split. */
static void cut_at_text(struct parts *parts, const struct tensor_string *text,
                        const struct tensor_string *by, int64_t limit)
{
    if (limit == 0) {
        add(parts, text->data, text->size);
        return;
    }
    if (by->size == 0) {
        cut_at_blanks(parts, text, limit);
        return;
    }
    /* An empty text has no address to count from. */
    const char *start = text->size ? text->data : "", *end = start + text->size;
    for (int64_t cuts = 0; limit < 0 || cuts < limit; cuts++) {
        const char *found =
            start < end ? memmem(start, (size_t)(end - start), by->data, by->size) : NULL;
        if (!found)
            break;
        add(parts, start, (size_t)(found - start));
        start = found + by->size;
    }
    add(parts, start, (size_t)(end - start));
}

/* The sparse tensor of all parts. */
static bool give(struct kernel_call *call, const struct parts *all, const int *ends,
                 struct error *err)
{
    int64_t rows = kernel_in(call, 0)->count, longest = 0;
    struct tensor *indices = kernel_output(call, 0, &SHAPE(all->count, 2), err);
    struct tensor *values = indices ? kernel_output(call, 1, &SHAPE(all->count), err) : NULL;
    struct tensor *shape = values ? kernel_output(call, 2, &SHAPE(2), err) : NULL;
    if (!shape)
        return false;
    int64_t *index = indices->data;
    int at = 0;
    for (int64_t r = 0; r < rows; r++) {
        int64_t column = 0;
        for (; at < ends[r]; at++, column++) {
            index[2 * at] = r;
            index[2 * at + 1] = column;
            tensor_set_string(values, at, all->items[at].data, all->items[at].size);
        }
        longest = column > longest ? column : longest;
    }
    ((int64_t *)shape->data)[0] = rows;
    ((int64_t *)shape->data)[1] = longest;
    return true;
}

static bool split(struct kernel_call *call, cut *function, int64_t limit, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct parts all = {0};
    int *ends = kernel_scratch(call, (size_t)in->count * sizeof(*ends) + 1, err);
    if (!ends)
        return false;
    for (int64_t r = 0; r < in->count; r++) {
        function(&all, tensor_strings(in) + r, tensor_strings(kernel_in(call, 1)), limit);
        ends[r] = all.count;
    }
    bool ok = give(call, &all, ends, err);
    free(all.items);
    return ok;
}

static bool check(const struct kernel_call *call, const char *what, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *by = kernel_in(call, 1);
    char text[SHAPE_TEXT_BYTES];
    if (in->shape.rank != 1)
        return fail(err, INVALID, "input must be a vector, got shape: %s",
                    shape_text(&in->shape, text, sizeof(text)));
    if (by->shape.rank > 0)
        return fail(err, INVALID, "%s must be a scalar, got shape: %s", what,
                    shape_text(&by->shape, text, sizeof(text)));
    return true;
}

static bool split_run(struct kernel_call *call, struct error *err)
{
    bool skip = node_attr_bool(call->node, "skip_empty", true);
    return check(call, "delimiter", err) &&
           split(call, skip ? cut_at_set_skipping : cut_at_set_keeping, -1, err);
}

static bool split_v2_run(struct kernel_call *call, struct error *err)
{
    return check(call, "sep", err) &&
           split(call, cut_at_text, node_attr_int(call->node, "maxsplit", -1), err);
}

const struct kernel kernel_string_split = {
    .op = "StringSplit", .device = CPU, .run = split_run};
const struct kernel kernel_string_split_v2 = {
    .op = "StringSplitV2", .device = CPU, .run = split_v2_run};
