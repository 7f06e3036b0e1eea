/* bundle_slice.c - parts of tensors: their text, their keys, copying between them. */

#include <errno.h>

#include "base/error.h"
#include "base/str.h"
#include "runtime/io/internal.h"

/* --- text --- */

static bool read_number(const char **at, int64_t *number)
{
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    *number = strtoll(*at, &end, 10);
    *at = end;
    return !errno;
}

/* "0,5:-" */
static bool read_extents(const char *at, const struct shape *full, struct bundle_slice *slice)
{
    slice->rank = full->rank;
    if (!full->rank)
        return !*at || !strcmp(at, "-");
    for (int d = 0; d < full->rank; d++) {
        if (d && *at++ != ':')
            return false;
        slice->start[d] = 0;
        slice->length[d] = -1;
        if (*at == '-') {
            at++;
        } else if (!read_number(&at, &slice->start[d]) || *at++ != ',' ||
                   !read_number(&at, &slice->length[d])) {
            return false;
        }
    }
    return !*at;
}

bool bundle_slice_parse(const char *text, struct shape *full, struct bundle_slice *slice,
                        struct error *err)
{
    *full = SHAPE_SCALAR;
    const char *at = text;
    const char *slice_text = strrchr(text, ' ');
    slice_text = slice_text ? slice_text + 1 : text;
    while (at < slice_text) {
        int64_t dim;
        if (full->rank == LIMIT_TENSOR_RANK || !read_number(&at, &dim) || *at++ != ' ')
            return fail(err, INVALID, "'%s' is not a shape followed by a slice", text);
        full->dims[full->rank++] = dim;
    }
    if (!read_extents(slice_text, full, slice))
        return fail(err, INVALID, "'%s': the slice does not match the shape before it", text);
    struct shape shape;
    if (shape_count(full) < 0 || !bundle_slice_shape(slice, full, &shape))
        return fail(err, INVALID, "'%s': the slice is not inside the shape", text);
    return true;
}

/* --- keys: TensorFlow's ordered code --- */

static void add_ordered_unsigned(struct str *out, uint64_t value)
{
    char bytes[9];
    int length = 0;
    for (uint64_t rest = value; rest; rest >>= 8)
        length++;
    bytes[0] = (char)length;
    for (int i = 0; i < length; i++)
        bytes[1 + i] = (char)(value >> (8 * (length - 1 - i)));
    str_add_bytes(out, bytes, (size_t)length + 1);
}

static void add_ordered_text(struct str *out, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        str_add_char(out, text[i]);
        if (text[i] == 0)
            str_add_char(out, (char)0xff);
        else if ((unsigned char)text[i] == 0xff)
            str_add_char(out, 0);
    }
    str_add_bytes(out, "\0\x01", 2);
}

/*
 * `length` bytes hold 7 * length - 1 bits of value and sign; the first bit of the first byte is
 * the inverted sign, and as many bits equal to it follow as there are bytes after the first.
 */
static void add_ordered_signed(struct str *out, int64_t value)
{
    uint64_t magnitude = value < 0 ? ~(uint64_t)value : (uint64_t)value;
    int length = 1;
    while (length < 10 && 7 * length - 1 < 64 && magnitude >> (7 * length - 1))
        length++;

    unsigned char wide[10]; /* big-endian, sign extended */
    memset(wide, value < 0 ? 0xff : 0, sizeof(wide));
    for (int i = 0; i < 8; i++)
        wide[2 + i] = (unsigned char)((uint64_t)value >> (56 - 8 * i));
    unsigned char *first = wide + sizeof(wide) - length;
    for (int bit = 0; bit < length; bit++)
        first[bit / 8] ^= (unsigned char)(0x80 >> (bit % 8));
    str_add_bytes(out, first, (size_t)length);
}

void bundle_slice_key(const char *name, size_t name_size, const struct bundle_slice *slice,
                      struct str *out)
{
    add_ordered_unsigned(out, 0);
    add_ordered_text(out, name, name_size);
    add_ordered_unsigned(out, (uint64_t)slice->rank);
    for (int d = 0; d < slice->rank; d++) {
        add_ordered_signed(out, slice->start[d]);
        add_ordered_signed(out, slice->length[d]);
    }
}

/* --- geometry --- */

bool bundle_slice_equal(const struct bundle_slice *a, const struct bundle_slice *b)
{
    if (a->rank != b->rank)
        return false;
    for (int d = 0; d < a->rank; d++) {
        if (a->start[d] != b->start[d] || a->length[d] != b->length[d])
            return false;
    }
    return true;
}

bool bundle_slice_shape(const struct bundle_slice *slice, const struct shape *full,
                        struct shape *shape)
{
    if (slice->rank != full->rank)
        return false;
    shape->rank = full->rank;
    for (int d = 0; d < full->rank; d++) {
        int64_t start = slice->start[d], length = slice->length[d];
        if (length == -1) {
            if (start)
                return false;
            length = full->dims[d];
        }
        if (start < 0 || length < 0 || start > full->dims[d] || length > full->dims[d] - start)
            return false;
        shape->dims[d] = length;
    }
    return true;
}

int64_t bundle_slice_common(const struct shape *full, const struct bundle_slice *first,
                            const struct bundle_slice *second)
{
    struct shape a, b;
    if (!bundle_slice_shape(first, full, &a) || !bundle_slice_shape(second, full, &b))
        return 0;
    int64_t count = 1;
    for (int d = 0; d < full->rank; d++) {
        int64_t a_end = first->start[d] + a.dims[d], b_end = second->start[d] + b.dims[d];
        int64_t start = first->start[d] > second->start[d] ? first->start[d] : second->start[d];
        int64_t length = (a_end < b_end ? a_end : b_end) - start;
        count *= length > 0 ? length : 0;
    }
    return count;
}

static void copy_run(const struct tensor *source, int64_t from, struct tensor *target,
                     int64_t to, int64_t count)
{
    if (source->dtype == STRING) {
        const struct tensor_string *strings = tensor_strings(source);
        for (int64_t i = 0; i < count; i++)
            tensor_set_string(target, to + i, strings[from + i].data, strings[from + i].size);
        return;
    }
    size_t size = dtype_size(source->dtype);
    memcpy((char *)target->data + (size_t)to * size,
           (const char *)source->data + (size_t)from * size, (size_t)count * size);
}

int64_t bundle_slice_copy(const struct shape *full, const struct bundle_slice *from,
                          const struct tensor *source, const struct bundle_slice *to,
                          struct tensor *target)
{
    int rank = full->rank;
    int64_t begin[LIMIT_TENSOR_RANK], common[LIMIT_TENSOR_RANK], at[LIMIT_TENSOR_RANK] = {0};
    int64_t total = 1;
    for (int d = 0; d < rank; d++) {
        int64_t from_end = from->start[d] + source->shape.dims[d];
        int64_t to_end = to->start[d] + target->shape.dims[d];
        begin[d] = from->start[d] > to->start[d] ? from->start[d] : to->start[d];
        common[d] = (from_end < to_end ? from_end : to_end) - begin[d];
        if (common[d] <= 0)
            return 0;
        total *= common[d];
    }

    /* The innermost dimensions that are whole on both sides are copied in one run. */
    int outer = rank;
    int64_t run = 1;
    while (outer > 0) {
        outer--;
        run *= common[outer];
        if (common[outer] != source->shape.dims[outer] ||
            common[outer] != target->shape.dims[outer])
            break;
    }
    for (int64_t copied = 0; copied < total; copied += run) {
        int64_t source_index = 0, target_index = 0;
        for (int d = 0; d < rank; d++) {
            int64_t place = begin[d] + at[d];
            source_index = source_index * source->shape.dims[d] + place - from->start[d];
            target_index = target_index * target->shape.dims[d] + place - to->start[d];
        }
        copy_run(source, source_index, target, target_index, run);
        for (int d = outer - 1; d >= 0 && ++at[d] == common[d]; d--)
            at[d] = 0;
    }
    return total;
}
