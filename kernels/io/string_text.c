/* string_text.c - single strings: stripped, upper and lower case, their length. */

#include "kernels/ref/numbers.h"

#include <unicode/ucasemap.h>
#include <unicode/utf8.h>

#include "base/str.h"

static struct tensor *like_input(struct kernel_call *call, struct error *err)
{
    return kernel_output(call, 0, &kernel_in(call, 0)->shape, err);
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool strip_run(struct kernel_call *call, struct error *err)
{
    const struct tensor_string *in = tensor_strings(kernel_in(call, 0));
    struct tensor *out = like_input(call, err);
    if (!out)
        return false;
    for (int64_t i = 0; i < out->count; i++) {
        size_t from = 0, to = in[i].size;
        while (from < to && is_blank(in[i].data[from]))
            from++;
        while (to > from && is_blank(in[i].data[to - 1]))
            to--;
        tensor_set_string(out, i, to > from ? in[i].data + from : "", to - from);
    }
    return true;
}

/* --- case --- */

typedef int32_t map_utf8(const UCaseMap *map, char *to, int32_t to_size, const char *from,
                         int32_t from_size, UErrorCode *status);

static void set_mapped_ascii(struct tensor *out, int64_t i, const struct tensor_string *in,
                             bool upper)
{
    char first = upper ? 'a' : 'A', last = upper ? 'z' : 'Z';
    tensor_set_string(out, i, in->data, in->size);
    char *text = ((struct tensor_string *)out->data)[i].data;
    for (size_t k = 0; k < in->size; k++)
        if (text[k] >= first && text[k] <= last)
            text[k] ^= 0x20;
}

/* What is no character becomes U+FFFD.  Up to the first zero byte: TensorFlow reads no further.
 */
static void add_valid(struct str *out, const struct tensor_string *in)
{
    int32_t size = in->size ? (int32_t)strnlen(in->data, in->size) : 0;
    for (int32_t at = 0; at < size;) {
        int32_t start = at, c;
        U8_NEXT((const uint8_t *)in->data, at, size, c);
        if (c < 0)
            str_add(out, "\xef\xbf\xbd");
        else
            str_add_bytes(out, in->data + start, (size_t)(at - start));
    }
}

static bool set_mapped_utf8(struct tensor *out, int64_t i, const struct tensor_string *in,
                            const UCaseMap *map, map_utf8 *function, struct error *err)
{
    struct str text = {0}, valid = {0};
    UErrorCode status = U_ZERO_ERROR;
    if (in->size > INT32_MAX / 16)
        return fail(err, EXHAUSTED, "a string of %zu bytes is too long for its case to change",
                    in->size);
    add_valid(&valid, in);
    int32_t room = (int32_t)valid.size * 3 + 1; /* no character's other case takes more */
    char *mapped = str_extend(&text, (size_t)room);
    int32_t size = function(map, mapped, room, str_text(&valid), (int32_t)valid.size, &status);
    bool ok = U_SUCCESS(status) || fail(err, INTERNAL, "case mapping: %s", u_errorName(status));
    if (ok)
        tensor_set_string(out, i, mapped, (size_t)size);
    str_release(&text);
    str_release(&valid);
    return ok;
}

static bool change_case(struct kernel_call *call, bool upper, struct error *err)
{
    const struct tensor_string *in = tensor_strings(kernel_in(call, 0));
    const char *encoding = node_attr_string(call->node, "encoding", "");
    if (encoding[0] && strcmp(encoding, "utf-8") != 0)
        return fail(err, INVALID, "only utf-8 or '' (no encoding) is supported, received %s",
                    encoding);
    struct tensor *out = like_input(call, err);
    if (!out)
        return false;
    UErrorCode status = U_ZERO_ERROR;
    UCaseMap *map = encoding[0] ? ucasemap_open("", 0, &status) : NULL;
    bool ok = U_SUCCESS(status) || fail(err, INTERNAL, "case mapping: %s", u_errorName(status));
    for (int64_t i = 0; ok && i < out->count; i++) {
        if (map)
            ok = set_mapped_utf8(out, i, &in[i], map,
                                 upper ? ucasemap_utf8ToUpper : ucasemap_utf8ToLower, err);
        else
            set_mapped_ascii(out, i, &in[i], upper);
    }
    if (map)
        ucasemap_close(map);
    return ok;
}

static bool upper_run(struct kernel_call *call, struct error *err)
{
    return change_case(call, true, err);
}

static bool lower_run(struct kernel_call *call, struct error *err)
{
    return change_case(call, false, err);
}

/* --- length --- */

static int64_t characters(const struct tensor_string *text)
{
    int64_t count = 0;
    for (size_t k = 0; k < text->size; k++)
        count += (text->data[k] & 0xc0) != 0x80; /* not the inside of a character */
    return count;
}

static bool length_run(struct kernel_call *call, struct error *err)
{
    const struct tensor_string *in = tensor_strings(kernel_in(call, 0));
    bool bytes = strcmp(node_attr_string(call->node, "unit", "BYTE"), "BYTE") == 0;
    struct tensor *out = like_input(call, err);
    if (!out)
        return false;
    for (int64_t i = 0; i < out->count; i++)
        ((int32_t *)out->data)[i] = (int32_t)(bytes ? (int64_t)in[i].size : characters(&in[i]));
    return true;
}

#define TEXT(name_, run_)                                                                      \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_string_strip = TEXT("StringStrip", strip_run);
const struct kernel kernel_string_upper = TEXT("StringUpper", upper_run);
const struct kernel kernel_string_lower = TEXT("StringLower", lower_run);
const struct kernel kernel_string_length = TEXT("StringLength", length_run);
