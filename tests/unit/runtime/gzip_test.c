/* gzip_test.c - bytes through gzip and back, cut, damaged and larger than allowed; and specs
 * that name a file. */

#include "base/alloc.h"
#include "base/str.h"
#include "runtime/io/base64.h"
#include "runtime/io/file.h"
#include "runtime/io/gzip.h"
#include "runtime/spec/spec_embed.h"
#include "tests/unit/folder.h"
#include "tests/unit/test.h"

static struct str packed_of(size_t size)
{
    char *bytes = alloc_bytes(size + 1);
    struct str packed = {0};
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(i * i >> 7);
    gzip_compress(bytes, size, &packed);
    free(bytes);
    return packed;
}

TEST(gzip_gives_back_what_it_was_given)
{
    static const size_t sizes[] = {0, 1, 1000, 256 << 10, 700000};
    struct error err;
    for (int i = 0; i < ARRAY_LEN(sizes); i++) {
        struct str packed = packed_of(sizes[i]), out = {0};
        bool whole;
        CHECK(gzip_is(packed.data, packed.size));
        CHECK_OK(gzip_decompress(packed.data, packed.size, true, sizes[i], &out, &whole, &err),
                 &err);
        CHECK(whole);
        CHECK_INT(out.size, sizes[i]);
        for (size_t k = 0; k < out.size; k++)
            CHECK(out.data[k] == (char)(k * k >> 7));
        str_release(&packed);
        str_release(&out);
    }
}

TEST(gzip_says_what_is_cut_damaged_or_too_large)
{
    struct str packed = packed_of(100000), out = {0};
    struct error err;
    bool whole;
    CHECK_OK(gzip_decompress(packed.data, packed.size - 1, true, 100000, &out, &whole, &err),
             &err);
    CHECK(!whole);
    CHECK_FAILS(gzip_decompress(packed.data, packed.size, true, 99999, &out, &whole, &err),
                &err, EXHAUSTED);
    CHECK(strstr(err.text, "more than 99999 bytes"));
    packed.data[packed.size - 5] ^= 1;
    CHECK_FAILS(gzip_decompress(packed.data, packed.size, true, 100000, &out, &whole, &err),
                &err, DATA_LOSS);
    CHECK(strstr(err.text, "inflate() failed"));
    CHECK(!gzip_is("\x1f", 1));
    str_release(&packed);
    str_release(&out);
}

/* A spec whose graph is a file beside it holds the file's bytes then. */
TEST(spec_embed_puts_the_graph_in)
{
    const char *spec_path = folder_path("spec.json");
    struct str packed = {0}, bytes = {0};
    struct error err;
    bool changed, whole;
    CHECK_OK(file_write(folder_path("model.meta"), "abc", 3, &err), &err);
    json_t *spec =
        json_pack("{s:{s:{s:s, s:s}}}", "model", "graph", "file", "model.meta", "loss", "l");
    CHECK_OK(spec_embed(spec, spec_path, &changed, &err), &err);
    CHECK(changed);
    json_t *graph = json_object_get(json_object_get(spec, "model"), "graph");
    CHECK(!json_object_get(graph, "file"));
    CHECK_TEXT(json_string_value(json_object_get(graph, "loss")), "l");
    CHECK(base64_decode(json_string_value(json_object_get(graph, "meta_graph")), &packed));
    CHECK_OK(gzip_decompress(packed.data, packed.size, true, 3, &bytes, &whole, &err), &err);
    CHECK_TEXT(str_text(&bytes), "abc");
    json_object_set_new(graph, "file", json_string("model.meta"));
    CHECK_FAILS(spec_embed(spec, spec_path, &changed, &err), &err, INVALID);
    CHECK(strstr(err.text, "meta_graph as well"));
    json_object_del(graph, "meta_graph");
    json_object_set_new(graph, "file", json_string("none.meta"));
    CHECK_FAILS(spec_embed(spec, spec_path, &changed, &err), &err, NOT_FOUND);
    CHECK(strstr(err.text, "none.meta"));
    json_object_set_new(graph, "file", json_integer(3));
    CHECK_FAILS(spec_embed(spec, spec_path, &changed, &err), &err, INVALID);
    CHECK(strstr(err.text, "file is no path"));
    json_decref(spec);
    str_release(&packed);
    str_release(&bytes);
}
