/* augment_test.c - images changed by chance: what each class does, and that chance repeats. */

#include "base/arena.h"
#include "runtime/dataset/augment.h"
#include "tests/unit/test.h"

#define HEIGHT 4
#define WIDTH 6
#define DEPTH 2
#define PIXELS (HEIGHT * WIDTH * DEPTH)

/* A list of one class from JSON. */
struct list {
    struct arena *arena;
    json_t *json;
    const struct config *config;
};

static bool list_read(struct list *list, const char *text, struct error *err)
{
    char whole[512];
    snprintf(whole, sizeof(whole), "{\"a\": %s}", text);
    list->arena = arena_new();
    list->json = json_loads(whole, 0, NULL);
    CHECK(list->json);
    struct spec_object object = {list->json, "", list->arena, err};
    return config_read(&object, "a", &augment_family, &list->config);
}

static void list_release(struct list *list)
{
    json_decref(list->json);
    arena_free(list->arena);
}

static void fill(float image[PIXELS])
{
    for (int i = 0; i < PIXELS; i++)
        image[i] = (float)(i + 1) / 100;
}

static float at(const float *image, int64_t width, int64_t y, int64_t x, int64_t c)
{
    return image[(y * width + x) * DEPTH + c];
}

static struct augment *make(struct list *list, const char *text, int64_t seed)
{
    struct error err;
    CHECK_OK(list_read(list, text, &err), &err);
    struct augment *augment =
        augment_new(&list->config, 1, &SHAPE(HEIGHT, WIDTH, DEPTH), seed, &err);
    CHECK_OK(augment, &err);
    return augment;
}

/* Runs a class at many positions; `check` looks at each result. */
static void run_all(const char *text, void (*check)(const float *from, const float *to,
                                                    const struct shape *shape))
{
    struct list list;
    struct augment *augment = make(&list, text, 5);
    float from[PIXELS], to[4 * PIXELS];
    fill(from);
    for (int64_t position = 0; position < 200; position++) {
        augment_run(augment, position, from, to);
        check(from, to, augment_shape(augment));
    }
    augment_free(augment);
    list_release(&list);
}

static int flips[4];

static void check_flip(const float *from, const float *to, const struct shape *shape)
{
    CHECK(shape_equal(shape, &SHAPE(HEIGHT, WIDTH, DEPTH)));
    int found = 0;
    for (int way = 0; way < 4; way++) {
        bool equal = true;
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++)
                for (int c = 0; c < DEPTH; c++)
                    equal &=
                        at(to, WIDTH, y, x, c) == at(from, WIDTH, way & 2 ? HEIGHT - 1 - y : y,
                                                     way & 1 ? WIDTH - 1 - x : x, c);
        flips[way] += equal;
        found += equal;
    }
    CHECK_INT(found, 1);
}

TEST(flip_mirrors_half_of_the_images)
{
    memset(flips, 0, sizeof(flips));
    run_all("{\"name\": \"RandomFlip\", \"mode\": \"horizontal\"}", check_flip);
    CHECK(flips[0] > 70 && flips[1] > 70 && flips[2] == 0 && flips[3] == 0);
    memset(flips, 0, sizeof(flips));
    run_all("\"RandomFlip\"", check_flip);
    for (int way = 0; way < 4; way++)
        CHECK(flips[way] > 25);
}

static int crops[5][5];

static void check_crop(const float *from, const float *to, const struct shape *shape)
{
    CHECK(shape_equal(shape, &SHAPE(HEIGHT, WIDTH, DEPTH)));
    int found = 0;
    for (int down = -2; down <= 2; down++) {
        for (int right = -2; right <= 2; right++) {
            bool equal = true;
            for (int y = 0; y < HEIGHT; y++)
                for (int x = 0; x < WIDTH; x++) {
                    bool in = y + down >= 0 && y + down < HEIGHT && x + right >= 0 &&
                              x + right < WIDTH;
                    for (int c = 0; c < DEPTH; c++)
                        equal &= at(to, WIDTH, y, x, c) ==
                                 (in ? at(from, WIDTH, y + down, x + right, c) : 0);
                }
            crops[down + 2][right + 2] += equal;
            found += equal;
        }
    }
    CHECK_INT(found, 1);
}

TEST(crop_moves_a_window_over_the_padded_image)
{
    memset(crops, 0, sizeof(crops));
    run_all("{\"name\": \"RandomCrop\", \"height\": 4, \"width\": 6, \"padding\": 2}",
            check_crop);
    for (int i = 0; i < 25; i++)
        CHECK(crops[i / 5][i % 5] > 0);
}

TEST(crop_takes_the_middle_in_evaluations)
{
    struct list list;
    struct augment *augment =
        make(&list, "{\"name\": \"RandomCrop\", \"height\": 2, \"width\": 3}", 1);
    float from[PIXELS], to[PIXELS];
    fill(from);
    CHECK(shape_equal(augment_shape(augment), &SHAPE(2, 3, DEPTH)));
    augment_run(augment, -1, from, to);
    for (int y = 0; y < 2; y++)
        for (int x = 0; x < 3; x++)
            CHECK(at(to, 3, y, x, 1) == at(from, WIDTH, y + 1, x + 1, 1));
    augment_free(augment);
    list_release(&list);
}

/* By whole pixels only, so each is one of the image's or the filling. */
TEST(translation_moves_by_the_share_that_is_asked_for)
{
    static const struct {
        const char *text;
        int from[WIDTH]; /* columns of the image; -1: filled with 7 */
    } cases[] = {
        {"\"fill_mode\": \"constant\", \"fill_value\": 7", {-1, -1, 0, 1, 2, 3}},
        {"\"fill_mode\": \"nearest\"", {0, 0, 0, 1, 2, 3}},
        {"\"fill_mode\": \"reflect\"", {1, 0, 0, 1, 2, 3}},
        {"\"fill_mode\": \"wrap\"", {4, 5, 0, 1, 2, 3}},
    };
    for (int i = 0; i < ARRAY_LEN(cases); i++) {
        char text[200];
        struct list list;
        float from[PIXELS], to[PIXELS];
        snprintf(
            text, sizeof(text),
            "{\"name\": \"RandomTranslation\", \"height_factor\": 0, \"width_factor\": "
            "[0.3333333333333333, 0.3333333333333333], \"interpolation\": \"nearest\", %s}",
            cases[i].text);
        struct augment *augment = make(&list, text, 1);
        fill(from);
        augment_run(augment, 3, from, to);
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++)
                CHECK(at(to, WIDTH, y, x, 0) ==
                      (cases[i].from[x] < 0 ? 7 : at(from, WIDTH, y, cases[i].from[x], 0)));
        augment_run(augment, -1, from, to);
        CHECK(!memcmp(from, to, sizeof(from)));
        augment_free(augment);
        list_release(&list);
    }
}

TEST(translation_by_half_a_pixel_is_between_two)
{
    struct list list;
    float from[PIXELS], to[PIXELS];
    struct augment *augment =
        make(&list,
             "{\"name\": \"RandomTranslation\", \"height_factor\": [-0.125, -0.125], "
             "\"width_factor\": 0}",
             1);
    fill(from);
    augment_run(augment, 0, from, to);
    for (int x = 0; x < WIDTH; x++) {
        double middle = (at(from, WIDTH, 0, x, 0) + at(from, WIDTH, 1, x, 0)) / 2;
        CHECK(at(to, WIDTH, 0, x, 0) > middle - 1e-6 && at(to, WIDTH, 0, x, 0) < middle + 1e-6);
    }
    augment_free(augment);
    list_release(&list);
}

TEST(rotation_by_half_a_turn_is_both_flips)
{
    struct list list;
    float from[PIXELS], to[PIXELS];
    struct augment *augment =
        make(&list, "{\"name\": \"RandomRotation\", \"factor\": [0.5, 0.5]}", 1);
    fill(from);
    augment_run(augment, 0, from, to);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            float wanted = at(from, WIDTH, HEIGHT - 1 - y, WIDTH - 1 - x, 0);
            CHECK(at(to, WIDTH, y, x, 0) > wanted - 1e-5f &&
                  at(to, WIDTH, y, x, 0) < wanted + 1e-5f);
        }
    augment_free(augment);
    list_release(&list);
}

static void check_same_size(const float *from, const float *to, const struct shape *shape)
{
    (void)from;
    CHECK(shape_equal(shape, &SHAPE(HEIGHT, WIDTH, DEPTH)));
    for (int i = 0; i < PIXELS; i++)
        CHECK(to[i] >= 0.01f - 1e-6f && to[i] <= 0.48f + 1e-6f);
}

TEST(zoom_and_rotation_stay_within_the_values_of_the_image)
{
    run_all("{\"name\": \"RandomZoom\", \"height_factor\": 0.5}", check_same_size);
    run_all("{\"name\": \"RandomZoom\", \"height_factor\": [-0.9, 3], \"width_factor\": 0.2, "
            "\"fill_mode\": \"wrap\"}",
            check_same_size);
    run_all("{\"name\": \"RandomRotation\", \"factor\": 1}", check_same_size);
}

static float darkest, brightest;

static void check_brightness(const float *from, const float *to, const struct shape *shape)
{
    (void)shape;
    float more = to[20] - from[20];
    darkest = more < darkest ? more : darkest;
    brightest = more > brightest ? more : brightest;
    for (int i = 0; i < PIXELS; i++) {
        float wanted = from[i] + more;
        wanted = wanted < 0 ? 0 : wanted > 1 ? 1 : wanted;
        CHECK(to[i] > wanted - 1e-5f && to[i] < wanted + 1e-5f);
    }
}

TEST(brightness_adds_the_same_everywhere)
{
    darkest = brightest = 0;
    run_all("{\"name\": \"RandomBrightness\", \"factor\": 0.2}", check_brightness);
    CHECK(darkest < -0.15f && darkest >= -0.2f && brightest > 0.15f && brightest <= 0.2f);
}

static void check_contrast(const float *from, const float *to, const struct shape *shape)
{
    (void)shape;
    double mean = 0, by = 0;
    for (int i = 0; i < PIXELS; i += DEPTH)
        mean += from[i] / (PIXELS / DEPTH);
    by = (to[30] - mean) / (from[30] - mean);
    CHECK(by > 0.69 && by < 1.31);
    for (int i = 0; i < PIXELS; i += DEPTH) {
        double wanted = mean + by * (from[i] - mean);
        wanted = wanted < 0 ? 0 : wanted;
        CHECK(to[i] > wanted - 1e-5 && to[i] < wanted + 1e-5);
    }
}

TEST(contrast_stretches_around_the_mean)
{
    run_all("{\"name\": \"RandomContrast\", \"factor\": 0.3}", check_contrast);
}

TEST(chance_follows_from_seed_and_position_alone)
{
    struct list list;
    float from[PIXELS], first[PIXELS], again[PIXELS];
    int same_seed = 0, other_seed = 0, other_position = 0;
    static const char text[] = "{\"name\": \"RandomTranslation\", \"height_factor\": 0.5, "
                               "\"width_factor\": 0.5}";
    struct augment *a = make(&list, text, 1);
    list_release(&list);
    struct list kept, other;
    augment_free(a);
    a = make(&kept, text, 1);
    struct augment *b = make(&other, text, 2);
    fill(from);
    for (int64_t position = 0; position < 50; position++) {
        augment_run(a, position, from, first);
        augment_run(a, position + 1, from, again);
        other_position += !memcmp(first, again, sizeof(first));
        augment_run(b, position, from, again);
        other_seed += !memcmp(first, again, sizeof(first));
        augment_run(a, position, from, again);
        same_seed += !memcmp(first, again, sizeof(first));
    }
    CHECK_INT(same_seed, 50);
    CHECK_INT(other_seed, 0);
    CHECK_INT(other_position, 0);
    augment_free(a);
    augment_free(b);
    list_release(&kept);
    list_release(&other);
}

TEST(what_cannot_be_is_refused)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"\"RandomFlop\"", "RandomFl"},
        {"{\"name\": \"RandomFlip\", \"mode\": \"up\"}", "mode"},
        {"\"RandomCrop\"", "how high"},
        {"{\"name\": \"RandomCrop\", \"height\": 0, \"width\": 1}", "height"},
        {"{\"name\": \"RandomTranslation\", \"height_factor\": -0.1, \"width_factor\": 0}",
         "height_factor"},
        {"{\"name\": \"RandomTranslation\", \"height_factor\": [0.2, 0.1], \"width_factor\": "
         "0}",
         "height_factor"},
        {"{\"name\": \"RandomRotation\", \"factor\": [0, 0.1, 0.2]}", "factor"},
        {"{\"name\": \"RandomRotation\", \"factor\": 2}", "factor"},
        {"{\"name\": \"RandomBrightness\", \"factor\": 0.1, \"value_range\": [1, 0]}",
         "value_range"},
    };
    for (int i = 0; i < ARRAY_LEN(bad); i++) {
        struct list list;
        struct error err = {0};
        CHECK_FAILS(list_read(&list, bad[i].text, &err), &err, INVALID);
        if (!strstr(err.text, bad[i].says) || strncmp(err.pointer, "/a", 2))
            CHECK_STOP("%s: %s at %s", bad[i].text, err.text, err.pointer);
        list_release(&list);
    }
    struct list list;
    struct error err;
    CHECK_OK(list_read(&list, "{\"name\": \"RandomCrop\", \"height\": 4, \"width\": 9}", &err),
             &err);
    CHECK_FAILS(augment_new(&list.config, 1, &SHAPE(HEIGHT, WIDTH, DEPTH), 1, &err), &err,
                INVALID);
    CHECK(strstr(err.text, "width is 9, allowed: at most 6"));
    CHECK_FAILS(augment_new(&list.config, 1, &SHAPE(7), 1, &err), &err, INVALID);
    CHECK_TEXT(err.pointer, "/a");
    list_release(&list);
}
