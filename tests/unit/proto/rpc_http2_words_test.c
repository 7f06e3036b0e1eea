/* rpc_http2_words_test.c - what gRPC writes into headers, and messages that are packed. */

#include <stdlib.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "proto/rpc_http2_words.h"
#include "tests/unit/test.h"

static struct error err;

static int64_t timeout_of(const char *text)
{
    return rpc_http2_timeout(text, strlen(text));
}

TEST(words_timeouts)
{
    static const struct {
        const char *text;
        int64_t ns;
    } cases[] = {
        {"1n", 1},
        {"0n", 0},
        {"25u", 25000},
        {"250m", 250000000},
        {"7S", INT64_C(7000000000)},
        {"2M", INT64_C(120000000000)},
        {"3H", INT64_C(10800000000000)},
        {"00000001S", 1000000000},
        {"99999999n", 99999999},
        {"99999999M", INT64_C(5999999940000000000)},
        {"2562047H", INT64_C(2562047) * 3600 * 1000000000},
        {"2562048H", INT64_MAX}, /* the first that is more than the number holds */
        {"99999999H", INT64_MAX},
    };
    static const char *const none[] = {"",
                                       "n",
                                       "1",
                                       "12",
                                       "1s",
                                       "1x",
                                       "-1n",
                                       "+1n",
                                       " 1n",
                                       "1 n",
                                       "1n ",
                                       "1nn",
                                       "1.5S",
                                       "0x1S",
                                       "1h",
                                       "mm",
                                       "S1",
                                       "123456789n",
                                       "H",
                                       "\xff"
                                       "1n"};
    for (int i = 0; i < ARRAY_LEN(cases); i++)
        CHECK(timeout_of(cases[i].text) == cases[i].ns);
    for (int i = 0; i < ARRAY_LEN(none); i++)
        CHECK(timeout_of(none[i]) == -1);
    CHECK(rpc_http2_timeout("1\0", 2) == -1);
    CHECK(rpc_http2_timeout("1\0n", 3) == -1);
    CHECK(rpc_http2_timeout("12345n", 3) == -1); /* its size says where it ends */
}

TEST(words_percent)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"plain text ~!", "plain text ~!"},
        {"100%", "100%25"},
        {"a\nb\tc\x7f", "a%0Ab%09c%7F"},
        {"gr\xc3\xbc\xc3\x9f", "gr%C3%BC%C3%9F"},
        {"\x01\xff", "%01%FF"},
    };
    for (int i = 0; i < ARRAY_LEN(cases); i++) {
        struct str out = {0};
        rpc_http2_add_percent(&out, cases[i][0]);
        CHECK_TEXT(str_text(&out), cases[i][1]);
        str_release(&out);
    }
}

TEST(words_base64)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"f", "Zg"},
        {"fo", "Zm8"},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg"},
        {"fooba", "Zm9vYmE"},
        {"foobar", "Zm9vYmFy"},
        {"\xff\xff\xfe", "///+"},
        {"\xfb\xef", "++8"},
    };
    struct str out = {0};
    for (int i = 0; i < ARRAY_LEN(cases); i++) {
        str_clear(&out);
        rpc_http2_add_base64(&out, cases[i][0], strlen(cases[i][0]));
        CHECK_TEXT(str_text(&out), cases[i][1]);
    }
    str_clear(&out);
    str_add(&out, "kept ");
    rpc_http2_add_base64(&out, "\0\0\0\0", 4);
    CHECK_TEXT(str_text(&out), "kept AAAAAA");
    str_release(&out);
}

static enum rpc_http2_packing packing_of(const char *name)
{
    return rpc_http2_packing_of(name, strlen(name));
}

TEST(words_packings)
{
    static const char *const unknown[] = {"",       "Gzip",     "gzi",          "gzipp",
                                          "snappy", "deflate ", "identity,gzip"};
    CHECK_INT(packing_of("identity"), PACKING_NONE);
    CHECK_INT(packing_of("gzip"), PACKING_GZIP);
    CHECK_INT(packing_of("deflate"), PACKING_DEFLATE);
    for (int i = 0; i < ARRAY_LEN(unknown); i++)
        CHECK_INT(packing_of(unknown[i]), PACKING_UNKNOWN);
}

/* --- packed messages --- */

static void pack(struct str *out, const void *bytes, size_t size, enum rpc_http2_packing how)
{
    z_stream stream = {0};
    CHECK_INT(deflateInit2(&stream, 6, Z_DEFLATED, how == PACKING_GZIP ? 15 + 16 : 15, 8,
                           Z_DEFAULT_STRATEGY),
              Z_OK);
    size_t bound = deflateBound(&stream, size);
    str_clear(out);
    stream.next_in = (unsigned char *)bytes;
    stream.avail_in = (unsigned)size;
    stream.next_out = (unsigned char *)str_extend(out, bound);
    stream.avail_out = (unsigned)bound;
    CHECK_INT(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out->size = stream.total_out;
    deflateEnd(&stream);
}

static const enum rpc_http2_packing known[] = {PACKING_GZIP, PACKING_DEFLATE};

/* Of any size, and just as large as may be. */
TEST(words_unpack)
{
    static const size_t sizes[] = {0, 1, 16383, 16384, 16385, 1 << 20};
    char *bytes = alloc_bytes(1 << 20);
    for (int i = 0; i < 1 << 20; i++)
        bytes[i] = (char)(i * 2654435761u >> 24);
    for (int i = 0; i < ARRAY_LEN(sizes); i++) {
        for (int k = 0; k < ARRAY_LEN(known); k++) {
            struct str message = {0};
            pack(&message, bytes, sizes[i], known[k]);
            CHECK_OK(rpc_http2_unpack(&message, known[k], (int64_t)sizes[i], &err), &err);
            CHECK_INT(message.size, sizes[i]);
            CHECK(!sizes[i] || !memcmp(message.data, bytes, sizes[i]));
            str_release(&message);
        }
    }
    free(bytes);
}

/* A small message may be very large inside: no more than the limit is taken out. */
TEST(words_unpack_no_more_than_the_limit)
{
    char *bytes = alloc_bytes(8 << 20);
    for (int k = 0; k < ARRAY_LEN(known); k++) {
        struct str message = {0};
        pack(&message, bytes, 8 << 20, known[k]);
        CHECK(message.size < 16384);
        CHECK_FAILS(rpc_http2_unpack(&message, known[k], 1 << 20, &err), &err, EXHAUSTED);
        CHECK(strstr(err.text, "1048576"));
        CHECK_FAILS(rpc_http2_unpack(&message, known[k], (8 << 20) - 1, &err), &err, EXHAUSTED);
        CHECK_OK(rpc_http2_unpack(&message, known[k], 8 << 20, &err), &err);
        str_release(&message);
    }
    free(bytes);
}

/* At whatever byte it ends. */
TEST(words_unpack_what_is_cut_short)
{
    for (int k = 0; k < ARRAY_LEN(known); k++) {
        struct str whole = {0};
        pack(&whole, "hello, hello, hello, hello", 26, known[k]);
        for (size_t size = 0; size < whole.size; size++) {
            struct str message = {0};
            str_add_bytes(&message, whole.data, size);
            CHECK_FAILS(rpc_http2_unpack(&message, known[k], 1000, &err), &err, INVALID);
            CHECK_INT(message.size, size);
            str_release(&message);
        }
        str_release(&whole);
    }
}

TEST(words_unpack_nonsense)
{
    struct str message = {0};
    for (int k = 0; k < ARRAY_LEN(known); k++) {
        CHECK_FAILS(rpc_http2_unpack(&message, known[k], 1000, &err), &err, INVALID);
        str_add(&message, "this has never been packed");
        CHECK_FAILS(rpc_http2_unpack(&message, known[k], 1000, &err), &err, INVALID);
        pack(&message, "hello", 5, known[!k]); /* the other way */
        CHECK_FAILS(rpc_http2_unpack(&message, known[k], 1000, &err), &err, INVALID);
        pack(&message, "hello", 5, known[k]);
        message.data[message.size - 3] ^= 1; /* its checksum */
        CHECK_FAILS(rpc_http2_unpack(&message, known[k], 1000, &err), &err, INVALID);
        str_release(&message);
    }
    str_add(&message, "hello");
    CHECK_FAILS(rpc_http2_unpack(&message, PACKING_NONE, 1000, &err), &err, INVALID);
    CHECK_FAILS(rpc_http2_unpack(&message, PACKING_UNKNOWN, 1000, &err), &err, INVALID);
    str_release(&message);
}
