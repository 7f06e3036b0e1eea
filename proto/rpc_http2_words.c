/* rpc_http2_words.c - words and packed messages of gRPC. */

#include <inttypes.h>
#include <zlib.h>

#include "base/error.h"
#include "base/str.h"
#include "proto/rpc_http2_words.h"

int64_t rpc_http2_timeout(const char *text, size_t size)
{
    static const char units[] = "numSMH";
    static const int64_t ns_of[] = {1,
                                    1000,
                                    INT64_C(1000000),
                                    INT64_C(1000000000),
                                    INT64_C(60000000000),
                                    INT64_C(3600000000000)};
    int64_t count = 0;
    if (size < 2 || size > 9) /* eight digits and a unit */
        return -1;
    const char *unit = memchr(units, text[size - 1], sizeof(units) - 1);
    for (size_t i = 0; unit && i < size - 1; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        count = 10 * count + (text[i] - '0');
    }
    if (!unit)
        return -1;
    int64_t ns = ns_of[unit - units];
    return count > INT64_MAX / ns ? INT64_MAX : count * ns;
}

void rpc_http2_add_percent(struct str *out, const char *text)
{
    for (; *text; text++) {
        if (*text >= ' ' && *text <= '~' && *text != '%')
            str_add_char(out, *text);
        else
            str_printf(out, "%%%02X", (unsigned char)*text);
    }
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void rpc_http2_add_plain(struct str *out, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bool escapes = text[i] == '%' && size - i > 2 && digit_of(text[i + 1]) >= 0 &&
                       digit_of(text[i + 2]) >= 0;
        str_add_char(out, escapes ? (char)(digit_of(text[i + 1]) << 4 | digit_of(text[i + 2]))
                                  : text[i]);
        i += escapes ? 2 : 0;
    }
}

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void rpc_http2_add_decoded(struct str *out, const char *text, size_t size)
{
    uint32_t bits = 0;
    int have = 0;
    for (size_t i = 0; i < size; i++) {
        const char *digit = memchr(digits, text[i], sizeof(digits) - 1);
        if (!digit)
            break;
        bits = bits << 6 | (uint32_t)(digit - digits);
        have += 6;
        if (have < 8)
            continue;
        have -= 8;
        str_add_char(out, (char)(bits >> have & 0xff));
    }
}

void rpc_http2_add_base64(struct str *out, const void *bytes, size_t size)
{
    const unsigned char *in = bytes;
    for (size_t at = 0; at < size; at += 3) {
        size_t count = size - at < 3 ? size - at : 3;
        uint32_t bits = (uint32_t)in[at] << 16;
        if (count > 1)
            bits |= (uint32_t)in[at + 1] << 8;
        if (count > 2)
            bits |= in[at + 2];
        for (size_t i = 0; i <= count; i++)
            str_add_char(out, digits[bits >> (18 - 6 * i) & 63]);
    }
}

enum rpc_http2_packing rpc_http2_packing_of(const char *name, size_t size)
{
    if (size == 8 && !memcmp(name, "identity", 8))
        return PACKING_NONE;
    if (size == 4 && !memcmp(name, "gzip", 4))
        return PACKING_GZIP;
    if (size == 7 && !memcmp(name, "deflate", 7))
        return PACKING_DEFLATE;
    return PACKING_UNKNOWN;
}

/* All of the stream into `out`; false: `err` says why. */
static bool unpack_stream(z_stream *stream, int64_t limit, struct str *out, struct error *err)
{
    char part[16384];
    int said = Z_OK;
    while (said == Z_OK) {
        stream->next_out = (unsigned char *)part;
        stream->avail_out = sizeof(part);
        said = inflate(stream, Z_NO_FLUSH);
        size_t got = sizeof(part) - stream->avail_out;
        if (out->size + got > (uint64_t)limit)
            return fail(err, EXHAUSTED,
                        "Received message larger than max: more than %" PRId64 " bytes when "
                        "unpacked",
                        limit);
        str_add_bytes(out, part, got);
        if (said == Z_BUF_ERROR || (said == Z_OK && !got && !stream->avail_in))
            break;
    }
    return said == Z_STREAM_END ||
           fail(err, INVALID, "the call carries a packed message that cannot be read");
}

bool rpc_http2_unpack(struct str *message, enum rpc_http2_packing packing, int64_t limit,
                      struct error *err)
{
    enum { WINDOW_BITS = 15, GZIP = 16 };
    z_stream stream = {0};
    struct str out = {0};
    if (packing == PACKING_NONE || packing == PACKING_UNKNOWN)
        return fail(err, INVALID, "the call carries a packed message, and says not how");
    if (inflateInit2(&stream, packing == PACKING_GZIP ? WINDOW_BITS + GZIP : WINDOW_BITS) !=
        Z_OK)
        return fail(err, EXHAUSTED, "no memory to unpack a message");
    stream.next_in = (unsigned char *)message->data;
    stream.avail_in = (unsigned)message->size;
    bool ok = unpack_stream(&stream, limit, &out, err);
    inflateEnd(&stream);
    if (ok) {
        str_release(message);
        *message = out;
    } else {
        str_release(&out);
    }
    return ok;
}
