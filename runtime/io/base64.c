/* base64.c - see base64.h. */

#include "runtime/io/base64.h"

#include "base/str.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const void *bytes, size_t size, struct str *out)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; i += 3) {
        size_t have = size - i < 3 ? size - i : 3;
        uint32_t bits = (uint32_t)at[i] << 16;
        bits |= have > 1 ? (uint32_t)at[i + 1] << 8 : 0;
        bits |= have > 2 ? at[i + 2] : 0;
        for (size_t k = 0; k < 4; k++)
            str_add_char(out, k <= have ? digits[bits >> (18 - 6 * k) & 63] : '=');
    }
}

bool base64_decode(const char *text, struct str *out)
{
    uint32_t bits = 0;
    int count = 0;
    for (; *text && *text != '='; text++) {
        char c = *text == '-' ? '+' : *text == '_' ? '/' : *text;
        const char *digit = strchr(digits, c);
        if (!digit)
            return false;
        bits = bits << 6 | (uint32_t)(digit - digits);
        count += 6;
        if (count >= 8) {
            count -= 8;
            str_add_char(out, (char)(bits >> count & 0xff));
        }
    }
    return !text[strspn(text, "=")] && count < 6;
}
