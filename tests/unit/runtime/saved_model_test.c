/* saved_model_test.c - the default values of a signature's inputs. */

#include "base/arena.h"
#include "base/str.h"
#include "runtime/saved_model_internal.h"
#include "runtime/signature.h"
#include "runtime/tensor.h"
#include "tests/unit/test.h"

/* A MetaGraphDef of `count` signatures, each with such a value for "x". */
static bool parse(int count, const char *value, struct arena *arena, struct saved_meta *meta,
                  struct error *err)
{
    struct str text = {0};
    str_add(&text, "graph_def {}\n");
    for (int i = 0; i < count; i++)
        str_printf(&text,
                   "signature_def { key: \"s%d\" value {\n"
                   "  inputs { key: \"x\" value { name: \"x:0\" dtype: DT_FLOAT } }\n"
                   "  defaults { key: \"x\" value { %s } }\n"
                   "} }\n",
                   i, value);
    bool ok = saved_model_parse(&text, true, true, NULL, arena, meta, err);
    str_release(&text);
    return ok;
}

#define FLOATS(size) "dtype: DT_FLOAT tensor_shape { dim { size: " size " } } float_val: 1.5"

TEST(defaults_are_filled)
{
    struct arena *arena = arena_new();
    struct saved_meta meta;
    struct error err;
    CHECK_OK(parse(1, FLOATS("3"), arena, &meta, &err), &err);
    CHECK_INT(meta.signatures_count, 1);
    const struct tensor *value = meta.signatures[0].inputs[0].when_absent;
    CHECK(value && value->count == 3 && tensor_number(value, 2) == 1.5);
    saved_model_drop(meta.signatures, meta.signatures_count);
    saved_model_release(&meta);
    arena_free(arena);
}

/* A few bytes must not take a gigabyte, nor many of them together. */
TEST(defaults_take_no_more_than_they_may)
{
    static const struct {
        int count;
        const char *value, *text;
    } cases[] = {
        {1, FLOATS("100000000"),
         "signature \"s0\": the default of \"x\": a value of shape [100000000] of float, "
         "allowed "
         "for all that are filled with theirs: 16777216 bytes"},
        {3, FLOATS("2000000"), "signature \"s2\": the default of \"x\": a value of shape"},
        {1, "dtype: DT_STRING tensor_shape { dim { size: 10000000 } }", "of string, allowed"},
        {1, "dtype: DT_RESOURCE tensor_shape { dim { size: 100000 } } tensor_content: \"x\"",
         "resource handles in tensor_content are not read"},
        {1,
         "dtype: DT_RESOURCE tensor_shape { dim { size: 1000000000 } } tensor_content: \"x\"",
         "of resource, allowed"},
        {1, "dtype: DT_STRING_REF tensor_shape { dim { size: 1 } }",
         "the type 107, which is none"},
        {1, FLOATS("-7"), "Shape dimension 0 is -7"},
    };
    for (int i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena *arena = arena_new();
        struct saved_meta meta;
        struct error err;
        if (parse(cases[i].count, cases[i].value, arena, &meta, &err))
            CHECK_STOP("%d times %s: was taken", cases[i].count, cases[i].value);
        if (!strstr(err.text, cases[i].text))
            CHECK_STOP("%s: %s", cases[i].value, err.text);
        arena_free(arena);
    }
}
