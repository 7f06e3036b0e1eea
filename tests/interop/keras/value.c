/* value.c - see value.h. */

#include "tests/interop/keras/value.h"

#include <math.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

static int base64_digit(char c)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

static void base64_decode(const char *text, struct str *out)
{
    uint32_t bits = 0;
    int count = 0;
    for (; *text && *text != '='; text++) {
        bits = bits << 6 | (uint32_t)base64_digit(*text);
        count += 6;
        if (count >= 8) {
            count -= 8;
            str_add_char(out, (char)(bits >> count & 0xff));
        }
    }
}

static int hex_digit(char c)
{
    return c >= 'a' ? c - 'a' + 10 : c - '0';
}

/* Strings: {"hex": ["6869", ...]}. */
static bool read_strings(const json_t *json, const struct shape *shape, struct tensor *out,
                         struct error *err)
{
    const json_t *all = json_object_get(json, "hex"), *element;
    size_t i;
    if (!tensor_init(out, STRING, shape, err))
        return false;
    if ((int64_t)json_array_size(all) != out->count) {
        tensor_release(out);
        return fail(err, INVALID, "an array of %zu strings", json_array_size(all));
    }
    json_array_foreach(all, i, element)
    {
        struct str bytes = {0};
        for (const char *at = json_string_value(element); at && at[0] && at[1]; at += 2)
            str_add_char(&bytes, (char)(hex_digit(at[0]) << 4 | hex_digit(at[1])));
        tensor_set_string(out, (int64_t)i, str_text(&bytes), bytes.size);
        str_release(&bytes);
    }
    return true;
}

bool value_read(const json_t *json, struct tensor *out, struct error *err)
{
    const json_t *dims = json_object_get(json, "shape");
    const char *name = json_string_value(json_object_get(json, "dtype"));
    const char *text = json_string_value(json_object_get(json, "base64"));
    struct shape shape = {.rank = (int)json_array_size(dims)};
    int dtype = name ? (int)dtype_find(name) : DTYPE_NONE;
    bool known = dtype == STRING || (text && dtype != DTYPE_NONE && dtype_size(dtype));
    if (!known || shape.rank > LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "an array of %s", name ? name : "nothing");
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = json_integer_value(json_array_get(dims, (size_t)i));
    if (dtype == STRING)
        return read_strings(json, &shape, out, err);
    struct str bytes = {0};
    base64_decode(text, &bytes);
    bool ok = tensor_init(out, (enum dtype)dtype, &shape, err);
    if (ok && bytes.size != (size_t)out->count * dtype_size(dtype)) {
        tensor_release(out);
        ok = fail(err, INVALID, "an array of %zu bytes", bytes.size);
    }
    if (ok && bytes.size)
        memcpy(out->data, bytes.data, bytes.size);
    str_release(&bytes);
    return ok;
}

bool value_check(const char *what, const struct tensor *got, const struct tensor *want,
                 double relative, double absolute, struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (!shape_equal(&got->shape, &want->shape))
        return fail(err, INVALID, "%s is %s, wanted %s", what,
                    shape_text(&got->shape, a, sizeof(a)),
                    shape_text(&want->shape, b, sizeof(b)));
    if ((got->dtype == STRING) != (want->dtype == STRING))
        return fail(err, INVALID, "%s is %s, wanted %s", what, dtype_name(got->dtype),
                    dtype_name(want->dtype));
    if (got->dtype == STRING)
        return tensor_equal(got, want) || fail(err, INVALID, "%s has other strings", what);
    double worst = 0;
    int64_t at = -1;
    for (int64_t i = 0; i < want->count; i++) {
        double x = tensor_number(got, i), y = tensor_number(want, i);
        if ((isnan(x) && isnan(y)) || x == y)
            continue;
        double over = fabs(x - y) / (absolute + relative * fabs(y));
        if (!(over <= worst)) {
            worst = over;
            at = i;
        }
    }
    if (worst <= 1)
        return true;
    return fail(err, INVALID, "%s[%lld] is %.9g, wanted %.9g (%.3g times the tolerance)", what,
                (long long)at, tensor_number(got, at), tensor_number(want, at), worst);
}
