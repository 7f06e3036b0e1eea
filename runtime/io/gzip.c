/* gzip.c - see gzip.h. */

#include "runtime/io/gzip.h"

#include <assert.h>
#include <zlib.h>

#include "base/error.h"
#include "base/str.h"

#define STEP_BYTES (256 << 10)
#define GZIP_BITS (MAX_WBITS + 16) /* zlib: with gzip's header */
#define MEMORY_LEVEL 8             /* zlib's default */

void gzip_compress(const void *bytes, size_t size, struct str *out)
{
    z_stream stream = {.next_in = (Bytef *)bytes};
    int result = deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, GZIP_BITS, MEMORY_LEVEL,
                              Z_DEFAULT_STRATEGY);
    assert(result == Z_OK);
    while (result != Z_STREAM_END) {
        size_t before = out->size;
        if (!stream.avail_in) {
            stream.avail_in = size < STEP_BYTES ? (uInt)size : STEP_BYTES;
            size -= stream.avail_in;
        }
        stream.next_out = (Bytef *)str_extend(out, STEP_BYTES);
        stream.avail_out = STEP_BYTES;
        result = deflate(&stream, size ? Z_NO_FLUSH : Z_FINISH);
        assert(result != Z_STREAM_ERROR);
        out->size = before + STEP_BYTES - stream.avail_out;
        out->data[out->size] = '\0';
    }
    deflateEnd(&stream);
}

bool gzip_is(const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    return size > 2 && at[0] == 0x1f && at[1] == 0x8b;
}

static bool inflate_all(z_stream *stream, size_t size_max, struct str *out, bool *whole,
                        struct error *err)
{
    for (int result = Z_OK;;) {
        if (out->size > size_max)
            return fail(err, EXHAUSTED, "compressed bytes inflate to more than %zu bytes",
                        size_max);
        if (result == Z_STREAM_END) {
            if (stream->avail_in == 0) {
                *whole = true;
                return true;
            }
            inflateReset(stream);
        }
        size_t before = out->size;
        stream->next_out = (Bytef *)str_extend(out, STEP_BYTES);
        stream->avail_out = STEP_BYTES;
        result = inflate(stream, Z_NO_FLUSH);
        out->size = before + STEP_BYTES - stream->avail_out;
        out->data[out->size] = '\0'; /* as str_text() has it */
        if (result == Z_BUF_ERROR || (result == Z_OK && stream->avail_out && !stream->avail_in))
            return true;
        if (result != Z_OK && result != Z_STREAM_END)
            return fail(err, DATA_LOSS, "inflate() failed with error %d: %s", result,
                        stream->msg ? stream->msg : "unknown");
    }
}

bool gzip_decompress(const void *bytes, size_t size, bool is_gzip, size_t size_max,
                     struct str *out, bool *whole, struct error *err)
{
    z_stream stream = {.next_in = (Bytef *)bytes, .avail_in = (uInt)size};
    str_clear(out);
    *whole = false;
    if (size > UINT32_MAX)
        return fail(err, EXHAUSTED, "compressed bytes: %zu are more than %u", size, UINT32_MAX);
    if (inflateInit2(&stream, is_gzip ? GZIP_BITS : MAX_WBITS) != Z_OK)
        return fail(err, EXHAUSTED, "no memory to inflate");
    bool ok = inflate_all(&stream, size_max, out, whole, err);
    inflateEnd(&stream);
    return ok;
}
