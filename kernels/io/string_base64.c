/* string_base64.c - base64 in the alphabet that is safe in web addresses. */

#include "kernels/io/base64.h"

#include "kernels/ref/numbers.h"

#include "base/str.h"

#define LETTERS_AND_DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static const char alphabet[] = LETTERS_AND_DIGITS "-_";
static const char plain[] = LETTERS_AND_DIGITS "+/";

static void encode(const uint8_t *bytes, size_t size, const char *digits, bool pad,
                   struct str *out)
{
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        uint32_t group = (uint32_t)bytes[i] << 16;
        group |= left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0;
        group |= left > 2 ? bytes[i + 2] : 0;
        for (size_t k = 0; k < 4; k++) {
            if (k <= left)
                str_add_char(out, digits[group >> (18 - 6 * k) & 63]);
            else if (pad)
                str_add_char(out, '=');
        }
    }
}

void kernel_base64(const void *bytes, size_t size, struct str *out)
{
    encode(bytes, size, plain, true, out);
}

static bool encode_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    bool pad = node_attr_bool(call->node, "pad", false);
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    struct str text = {0};
    for (int64_t i = 0; out && i < out->count; i++) {
        str_clear(&text);
        const struct tensor_string *string = tensor_strings(in) + i;
        encode((const uint8_t *)string->data, string->size, alphabet, pad, &text);
        tensor_set_string(out, i, str_text(&text), text.size);
    }
    str_release(&text);
    return out != NULL;
}

/* Two '=' at most may follow, and only to make the size a multiple of 4. */
static bool decode(const struct tensor_string *in, struct str *out, struct error *err)
{
    size_t size = in->size, padding = 0;
    if (size % 4 == 1)
        return fail(err, INVALID, "Base64 string length cannot be 1 modulo 4.");
    while (in->size % 4 == 0 && padding < 2 && size > 0 && in->data[size - 1] == '=')
        size--, padding++;
    uint32_t group = 0;
    int bits = 0;
    for (size_t i = 0; i < size; i++) {
        const char *digit = in->data[i] ? strchr(alphabet, in->data[i]) : NULL;
        if (!digit)
            return fail(err, INVALID, "Invalid character found in base64.");
        group = group << 6 | (uint32_t)(digit - alphabet);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            str_add_char(out, (char)(group >> bits));
        }
    }
    return true;
}

static bool decode_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    struct str text = {0};
    bool ok = out != NULL;
    for (int64_t i = 0; ok && i < out->count; i++) {
        str_clear(&text);
        ok = decode(tensor_strings(in) + i, &text, err);
        if (ok)
            tensor_set_string(out, i, str_text(&text), text.size);
    }
    str_release(&text);
    return ok;
}

const struct kernel kernel_encode_base64 = {
    .op = "EncodeBase64", .device = CPU, .run = encode_run};
const struct kernel kernel_decode_base64 = {
    .op = "DecodeBase64", .device = CPU, .run = decode_run};
