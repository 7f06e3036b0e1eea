/* string_number.c - numbers as strings and back. */

#include "kernels/ref/numbers.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>

#include "base/alloc.h"
#include "base/str.h"

/* --- AsString --- */

#define WIDTH_MAX 4096 /* of a printed number, as of its precision */

/* What the attributes ask for, as a format for each kind of number. */
struct format {
    char text[64];
    bool of_complex; /* two numbers in parentheses */
    int64_t width,
        precision; /* of strings: they have zero bytes, which printf() does not print */
    bool left;
};

static bool is_float(enum dtype dtype)
{
    return BIT(dtype) & (DTYPES_FLOAT | DTYPES_COMPLEX);
}

static bool check_format(const struct node *node, enum dtype dtype, struct error *err)
{
    int64_t width = node_attr_int(node, "width", -1);
    int64_t precision = node_attr_int(node, "precision", -1);
    bool scientific = node_attr_bool(node, "scientific", false);
    bool shortest = node_attr_bool(node, "shortest", false);
    const char *fill = node_attr_string(node, "fill", "");
    bool plain = !is_float(dtype) && dtype != STRING;
    if (plain && (scientific || shortest))
        return fail(err, INVALID,
                    "scientific and shortest format not supported for datatype %s",
                    dtype_name(dtype));
    if (plain && precision > -1)
        return fail(err, INVALID, "precision not supported for datatype %s", dtype_name(dtype));
    if (strlen(fill) > 1)
        return fail(err, INVALID, "Fill string must be one or fewer characters");
    if (scientific && shortest)
        return fail(err, INVALID, "Cannot select both scientific and shortest notation");
    if (fill[0] && !strchr(" +-0#", fill[0]))
        return fail(err, INVALID, "Fill argument not supported: \"%s\"", fill);
    if (width > WIDTH_MAX || precision > WIDTH_MAX)
        return fail(err, INVALID, "width %lld and precision %lld must be at most %d",
                    (long long)width, (long long)precision, WIDTH_MAX);
    return true;
}

/* Integers are printed as long long, floats as double. */
static bool make_format(const struct node *node, enum dtype dtype, struct format *format,
                        struct error *err)
{
    if (!check_format(node, dtype, err))
        return false;
    int64_t width = node_attr_int(node, "width", -1);
    int64_t precision = node_attr_int(node, "precision", -1);
    const char *letter = "";
    if (is_float(dtype))
        letter = node_attr_bool(node, "shortest", false)     ? "g"
                 : node_attr_bool(node, "scientific", false) ? "e"
                                                             : "f";
    else if (BIT(dtype) & DTYPES_SIGNED)
        letter = "lld";
    else if (BIT(dtype) & DTYPES_UNSIGNED)
        letter = "llu";
    char wide[24] = "", precise[24] = "";
    if (width > -1)
        snprintf(wide, sizeof(wide), "%lld", (long long)width);
    if (precision > -1 && is_float(dtype))
        snprintf(precise, sizeof(precise), ".%lld", (long long)precision);
    format->of_complex = BIT(dtype) & DTYPES_COMPLEX;
    format->width = width;
    format->precision = precision;
    const char *fill = node_attr_string(node, "fill", "");
    format->left = fill[0] == '-';
    snprintf(format->text, sizeof(format->text), "%%%s%s%s%s", fill, wide, precise, letter);
    return true;
}

/* The formats come from make_format() alone, which puts together what it has checked. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"

static void print_float(struct str *out, const struct format *format, double value)
{
    str_printf(out, format->text, value);
}

static void print_integer(struct str *out, const struct format *format, uint64_t bits)
{
    str_printf(out, format->text, (long long)bits);
}

#pragma GCC diagnostic pop

/* Neither padded nor cut without a width. */
static void print_text(struct str *out, const struct format *format,
                       const struct tensor_string *text)
{
    size_t width = format->width > 0 ? (size_t)format->width : 0, size = text->size;
    if (width && format->precision >= 0 && (size_t)format->precision < size)
        size = (size_t)format->precision;
    size_t pad = width > size ? width - size : 0;
    for (size_t i = 0; !format->left && i < pad; i++)
        str_add_char(out, ' ');
    str_add_bytes(out, text->data, size);
    for (size_t i = 0; format->left && i < pad; i++)
        str_add_char(out, ' ');
}

static void print_element(struct str *out, const struct format *format, const struct tensor *in,
                          int64_t i)
{
    kernel_load_bits *load = kernel_load_bits_for(in->dtype);
    if (in->dtype == STRING) {
        print_text(out, format, &tensor_strings(in)[i]);
    } else if (in->dtype == BOOL) {
        str_add(out, ((const bool *)in->data)[i] ? "true" : "false");
    } else if (format->of_complex) {
        double complex z = kernel_complex_at(in, i);
        str_add(out, "(");
        print_float(out, format, creal(z));
        str_add(out, ",");
        print_float(out, format, cimag(z));
        str_add(out, ")");
    } else if (load) {
        print_integer(out, format, load(in->data, i));
    } else {
        print_float(out, format, tensor_number(in, i));
    }
}

static bool as_string_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct format format;
    if (!make_format(call->node, in->dtype, &format, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (!out)
        return false;
    struct str text = {0};
    for (int64_t i = 0; i < out->count; i++) {
        str_clear(&text);
        print_element(&text, &format, in, i);
        tensor_set_string(out, i, str_text(&text), text.size);
    }
    str_release(&text);
    return true;
}

/* --- StringToNumber --- */

/* Decimal digits with a sign, blanks around them. */
static bool parse_integer(const char *text, bool is_unsigned, int64_t low, uint64_t high,
                          uint64_t *value)
{
    char *end;
    while (isspace((unsigned char)*text))
        text++;
    bool negative = *text == '-';
    if (negative && is_unsigned)
        return false;
    const char *digits = text + (*text == '-' || *text == '+');
    if (!isdigit((unsigned char)*digits))
        return false;
    errno = 0;
    *value = is_unsigned ? strtoull(text, &end, 10) : (uint64_t)strtoll(text, &end, 10);
    bool fits = errno == 0 &&
                (is_unsigned ? *value <= high
                             : (int64_t)*value >= low && (int64_t)*value <= (int64_t)high);
    while (isspace((unsigned char)*end))
        end++;
    return fits && !*end;
}

/* Overflow gives an infinity, underflow zero. */
static bool parse_float(const char *text, struct tensor *out, int64_t i)
{
    char *end;
    if (out->dtype == F32)
        ((float *)out->data)[i] = strtof(text, &end);
    else
        ((double *)out->data)[i] = strtod(text, &end);
    if (end == text)
        return false;
    while (isspace((unsigned char)*end))
        end++;
    return !*end;
}

static bool parse(const char *text, struct tensor *out, int64_t i)
{
    uint64_t value = 0;
    bool ok;
    switch (out->dtype) {
    case I32:
        ok = parse_integer(text, false, INT32_MIN, INT32_MAX, &value);
        break;
    case I64:
        ok = parse_integer(text, false, INT64_MIN, INT64_MAX, &value);
        break;
    case U32:
        ok = parse_integer(text, true, 0, UINT32_MAX, &value);
        break;
    case U64:
        ok = parse_integer(text, true, 0, UINT64_MAX, &value);
        break;
    default:
        return parse_float(text, out, i);
    }
    if (ok)
        kernel_store_bits_for(out->dtype)(out->data, i, value);
    return ok;
}

static bool to_number_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (!out)
        return false;
    bool ok = true;
    for (int64_t i = 0; ok && i < out->count; i++) {
        const struct tensor_string *bytes = tensor_strings(in) + i;
        char *text = alloc_text_n(bytes->data, bytes->size);
        ok = strlen(text) == bytes->size && parse(text, out, i);
        if (!ok)
            (void)fail(err, INVALID, "StringToNumberOp could not correctly convert string: %s",
                       text);
        free(text);
    }
    return ok;
}

const struct kernel kernel_as_string = {.op = "AsString", .device = CPU, .run = as_string_run};
const struct kernel kernel_string_to_number = {
    .op = "StringToNumber", .device = CPU, .run = to_number_run};
