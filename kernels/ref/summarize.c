/* summarize.c - numbers with as few digits as read back the same, rows in brackets. */

#include "kernels/ref/summarize.h"
#include "base/str.h"
#include "kernels/ref/numbers.h"

/* A question mark for each element, without rows, as TensorFlow does. */
#define DTYPES_WITHOUT_TEXT (DTYPES_COMPLEX | BIT(RESOURCE) | BIT(VARIANT))

static void print_float(double value, bool single, struct str *out)
{
    char text[64];
    snprintf(text, sizeof(text), "%.*g", single ? 6 : 15, value);
    double back = single ? (double)strtof(text, NULL) : strtod(text, NULL);
    if (back != value && value == value)
        snprintf(text, sizeof(text), "%.*g", single ? 9 : 17, value);
    str_add(out, text);
}

/* As in a C literal, without quotes. */
static void print_text(const struct tensor_string *text, struct str *out)
{
    static const char letters[] = "nrt\"'\\", values[] = "\n\r\t\"'\\";
    for (size_t i = 0; i < text->size; i++) {
        unsigned char c = (unsigned char)text->data[i];
        const char *special = c ? strchr(values, c) : NULL;
        if (special)
            str_printf(out, "\\%c", letters[special - values]);
        else if (c < 0x20 || c >= 0x7f)
            str_printf(out, "\\%03o", c);
        else
            str_add_char(out, (char)c);
    }
}

static void print_element(const struct tensor *tensor, int64_t i, struct str *out)
{
    kernel_load_bits *load = kernel_load_bits_for(tensor->dtype);
    if (tensor->dtype == STRING)
        print_text(&tensor_strings(tensor)[i], out);
    else if (BIT(tensor->dtype) & DTYPES_WITHOUT_TEXT)
        str_add_char(out, '?');
    else if (load && (BIT(tensor->dtype) & DTYPES_UNSIGNED))
        str_printf(out, "%llu", (unsigned long long)load(tensor->data, i));
    else if (load)
        str_printf(out, "%lld", (long long)load(tensor->data, i));
    else
        print_float(tensor_number(tensor, i), tensor->dtype != F64, out);
}

static void repeat(char c, int count, struct str *out)
{
    for (int i = 0; i < count; i++)
        str_add_char(out, c);
}

/* In how many dimensions behind the first an item begins with element `index`. */
static int rows_at(const struct shape *shape, int64_t index)
{
    int rows = 0;
    int64_t block = 1;
    for (int d = shape->rank - 1; d > 0; d--) {
        block *= shape->dims[d];
        if (index % block)
            break;
        rows++;
    }
    return rows;
}

void kernel_summarize(const struct tensor *tensor, int64_t count_max, struct str *out)
{
    const struct shape *shape = &tensor->shape;
    int64_t count = count_max < 0 || count_max > tensor->count ? tensor->count : count_max;
    bool flat = BIT(tensor->dtype) & DTYPES_WITHOUT_TEXT;
    if (tensor->dtype == BOOL && !count)
        return; /* as TensorFlow does */
    for (int64_t i = 0; i < count; i++) {
        int rows = flat ? 0 : rows_at(shape, i);
        repeat(']', i ? rows : 0, out);
        repeat('[', rows, out);
        if (i && !rows)
            str_add_char(out, ' ');
        print_element(tensor, i, out);
    }
    if (count && shape->rank > 1 && !flat) {
        if (count < tensor->count && !rows_at(shape, count))
            str_add(out, "...");
        repeat(']', shape->rank - 1, out);
    }
    if (count < tensor->count)
        str_add(out, "...");
}
