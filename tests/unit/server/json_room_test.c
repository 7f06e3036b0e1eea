/* json_room_test.c - JSON in an arena: the same values, nothing left on the heap. */

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "server/json_room.h"
#include "tests/unit/test.h"

TEST(it_reads_what_jansson_reads)
{
    json_room_begin();
    struct arena *arena = arena_new();
    struct str text = {0};
    str_add(&text, "{\"points\": [");
    for (int i = 0; i < 50; i++)
        str_printf(&text, "%s{\"step\": %d, \"values\": {\"loss \\u00e9\": %d.5}}",
                   i ? ", " : "", i, -i);
    str_add(&text, "], \"more\": [true, false, null, \"text\", 1e300]}");
    json_t *inside = json_room_load(arena, text.data, text.size, JSON_REJECT_DUPLICATES, NULL);
    json_t *outside = json_loadb(text.data, text.size, 0, NULL);
    CHECK(inside);
    CHECK(json_equal(inside, outside));
    char *dumped = json_dumps(inside, JSON_SORT_KEYS);
    char *wanted = json_dumps(outside, JSON_SORT_KEYS);
    CHECK_TEXT(dumped, wanted);
    free(dumped);
    free(wanted);
    json_decref(outside);
    str_release(&text);
    arena_free(arena); /* `inside` has gone with it: the address sanitizer would tell a leak */
}

TEST(what_is_wrong_is_told_and_leaves_nothing)
{
    json_room_begin();
    struct arena *arena = arena_new();
    json_error_t where;
    const char *cut = "{\"a\": [1, 2, {\"b\": \"c\"";
    CHECK(!json_room_load(arena, cut, strlen(cut), 0, &where));
    CHECK_INT(json_error_code(&where), json_error_premature_end_of_input);
    const char *twice = "{\"a\": 1, \"a\": 2}";
    CHECK(!json_room_load(arena, twice, strlen(twice), JSON_REJECT_DUPLICATES, &where));
    CHECK_INT(json_error_code(&where), json_error_duplicate_key);
    arena_free(arena);
}

TEST(an_arena_that_is_full_is_an_error)
{
    json_room_begin();
    struct arena *arena = arena_new_limited(4096);
    json_error_t where;
    const char *text =
        "[[1], [2], [3], [4], [5], [6], [7], [8], [9], [10], [11], [12], [13], [14], [15],"
        " [16], [17], [18], [19], [20], [21], [22], [23], [24], [25], [26], [27], [28]]";
    CHECK(!json_room_load(arena, text, strlen(text), 0, &where));
    arena_free(arena);
}

TEST(values_of_before_go_back_to_the_heap)
{
    json_t *before = json_pack("{s: [i, i]}", "of the heap", 1, 2);
    json_room_begin();
    struct arena *arena = arena_new();
    json_t *inside = json_room_load(arena, "[1, 2]", 6, 0, NULL);
    CHECK_INT(json_array_size(inside), 2);
    json_decref(before);
    json_t *after = json_string("of the heap again");
    json_decref(after);
    arena_free(arena);
}
