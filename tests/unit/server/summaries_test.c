/* summaries_test.c - summaries of models are kept, the newest of them. */

#include "base/arena.h"
#include "server/summaries.h"
#include "tests/unit/test.h"

static void key_of(int number, uint8_t key[SUMMARIES_KEY_BYTES])
{
    memset(key, 0, SUMMARIES_KEY_BYTES);
    memcpy(key, &number, sizeof(number));
}

static void keep(struct summaries *summaries, int number, int layers)
{
    struct arena *arena = arena_new();
    uint8_t key[SUMMARIES_KEY_BYTES];
    struct model_layer *list = arena_array(arena, (size_t)layers, sizeof(*list));
    for (int i = 0; i < layers; i++)
        list[i] = (struct model_layer){arena_printf(arena, "layer_%d_%d", number, i),
                                       arena_text(arena, "Dense"), SHAPE(number, i), number};
    key_of(number, key);
    summaries_keep(summaries, key, &(struct model_summary){list, layers, number});
    arena_free(arena); /* nothing of it is borrowed */
}

static bool has(struct summaries *summaries, int number, int layers)
{
    struct arena *arena = arena_new();
    uint8_t key[SUMMARIES_KEY_BYTES];
    struct model_summary found;
    key_of(number, key);
    bool known = summaries_find(summaries, key, arena, &found);
    if (known) {
        const struct model_layer *last = &found.layers[layers - 1];
        CHECK_INT(found.layers_count, layers);
        CHECK_INT(found.parameters, number);
        CHECK_TEXT(last->name, arena_printf(arena, "layer_%d_%d", number, layers - 1));
        CHECK_TEXT(last->class_name, "Dense");
        CHECK_INT(last->output.dims[1], layers - 1);
    }
    arena_free(arena);
    return known;
}

TEST(what_was_kept_is_found)
{
    struct summaries *summaries = summaries_new();
    assert_false(has(summaries, 1, 3));
    keep(summaries, 1, 3);
    keep(summaries, 1, 3);
    assert_true(has(summaries, 1, 3));
    assert_false(has(summaries, 2, 3));
    summaries_free(summaries);
}

TEST(the_oldest_make_room)
{
    struct summaries *summaries = summaries_new();
    int count = 0;
    for (int i = 0; i < 1000; i++)
        keep(summaries, i, 2);
    for (int i = 0; i < 1000; i++)
        count += has(summaries, i, 2);
    CHECK_INT(count, 64);
    assert_true(has(summaries, 999, 2));
    assert_false(has(summaries, 1000 - 65, 2));
    summaries_free(summaries);
}

TEST(one_of_very_many_layers_is_not_kept)
{
    struct summaries *summaries = summaries_new();
    keep(summaries, 1, 501);
    assert_false(has(summaries, 1, 501));
    keep(summaries, 2, 500);
    assert_true(has(summaries, 2, 500));
    summaries_free(summaries);
}
