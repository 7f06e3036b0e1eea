/* spec_array_test.c - a grid of parameters becomes one spec for each of its points. */

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/spec/spec_array.h"
#include "tests/unit/test.h"

#define SPEC                                                                                   \
    "{\"model\": {\"layers\": [{\"layer\": \"Flatten\"}, {\"layer\": \"Dense\", \"units\": "   \
    "10}]}, \"data\": {\"dataset\": \"mnist\"}, \"train\": {\"optimizer\": {\"name\": "        \
    "\"SGD\"}}, \"env~/x\": 1, \"array\": "

static struct spec_array *open_array(struct arena *arena, const char *grid)
{
    struct error err;
    const char *text = arena_printf(arena, SPEC "%s}", grid);
    struct spec_array *array = spec_array_open(arena, text, strlen(text), &err);
    if (!array)
        CHECK_STOP("%s: %s: %s", grid, err.pointer, err.text);
    return array;
}

TEST(array_is_a_grid)
{
    struct arena *arena = arena_new();
    struct spec_array *array =
        open_array(arena, "{\"/seed\": [1, 2], \"/train/optimizer/learning_rate\": [0.1, 0.01, "
                          "1], \"/stop/max_steps\": [7], \"/model/layers/1/units\": [3]}");
    static const char *const points[] = {
        "{\"/seed\":1,\"/train/optimizer/learning_rate\":0.1,",
        "{\"/seed\":1,\"/train/optimizer/learning_rate\":0.01,",
        "{\"/seed\":1,\"/train/optimizer/learning_rate\":1,",
        "{\"/seed\":2,\"/train/optimizer/learning_rate\":0.1,",
    };
    CHECK_INT(spec_array_count(array), 6);
    CHECK(spec_array_has(array, "/seed"));
    CHECK(!spec_array_has(array, "/name"));
    for (int i = 0; i < ARRAY_LEN(points); i++) {
        const char *parameters;
        spec_array_at(array, arena, i, &parameters);
        CHECK(!strncmp(parameters, points[i], strlen(points[i])));
    }
    const char *parameters, *text = spec_array_at(array, arena, 5, &parameters);
    CHECK(strstr(text, "\"learning_rate\":1}"));
    CHECK(strstr(text, "\"seed\":2"));
    CHECK(strstr(text, "\"stop\":{\"max_steps\":7}")); /* an object that was not there */
    CHECK(strstr(text, "\"units\":3"));
    CHECK(!strstr(text, "\"array\""));
    spec_array_close(array);
    arena_free(arena);
}

TEST(array_takes_what_pointers_can_say)
{
    struct arena *arena = arena_new();
    const char *parameters;
    struct spec_array *array =
        open_array(arena, "{\"/env~0~1x\": [5], \"/tags\": [[\"a\"], [\"b\", \"c\"]]}");
    const char *text = spec_array_at(array, arena, 1, &parameters);
    CHECK(strstr(text, "\"env~/x\":5"));
    CHECK(strstr(text, "\"tags\":[\"b\",\"c\"]"));
    spec_array_close(array);
    /* One that takes away the place of the next: the next has none, and nothing breaks. */
    array = open_array(arena, "{\"/model/layers\": [[]], \"/train\": [{}, 3]}");
    CHECK_INT(spec_array_count(array), 2);
    spec_array_at(array, arena, 1, &parameters);
    spec_array_close(array);
    array = open_array(arena, "null");
    CHECK_INT(spec_array_count(array), 0);
    spec_array_close(array);
    arena_free(arena);
}

TEST(array_refuses_with_pointer_and_reason)
{
    static const struct {
        const char *grid, *pointer, *text;
    } cases[] = {
        {"{}", "/array", "array is"},
        {"[1]", "/array", "array is"},
        {"{\"seed\": [1]}", "/array/seed", "is no parameter"},
        {"{\"/\": [1]}", "/array/~1", "is no parameter"},
        {"{\"/array\": [1]}", "/array/~1array", "is no parameter"},
        {"{\"/seed\": 1}", "/array/~1seed", "a list of values"},
        {"{\"/seed\": []}", "/array/~1seed", "a list of values"},
        {"{\"/model/layers/2/units\": [1]}", "/array/~1model~1layers~12~1units", "no place"},
        {"{\"/model/layers/x\": [1]}", "/array/~1model~1layers~1x", "no place"},
        {"{\"/data/dataset/x\": [1]}", "/array/~1data~1dataset~1x", "no place"},
    };
    struct arena *arena = arena_new();
    struct error err;
    for (int i = 0; i < ARRAY_LEN(cases); i++) {
        const char *text = arena_printf(arena, SPEC "%s}", cases[i].grid);
        CHECK(!spec_array_open(arena, text, strlen(text), &err));
        CHECK_INT(err.code, INVALID);
        if (strcmp(err.pointer, cases[i].pointer) || !strstr(err.text, cases[i].text))
            CHECK_STOP("%s: %s: %s", cases[i].grid, err.pointer, err.text);
    }
    /* 11 times 100 values are too many jobs. */
    struct str grid = {0};
    str_add(&grid, "{\"/seed\": [0,1,2,3,4,5,6,7,8,9,10], \"/priority\": [0");
    for (int i = 0; i < 99; i++)
        str_add(&grid, ",1");
    str_add(&grid, "]}");
    const char *text = arena_printf(arena, SPEC "%s}", str_text(&grid));
    str_release(&grid);
    CHECK(!spec_array_open(arena, text, strlen(text), &err));
    CHECK(strstr(err.text, "more than 1000 jobs"));
    CHECK(!spec_array_open(arena, "[", 1, &err));
    arena_free(arena);
}
