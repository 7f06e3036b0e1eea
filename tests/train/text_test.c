/* text_test.c - texts as examples: windows, pairs of words, what is held out, what is refused.
 */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/str.h"
#include "runtime/dataset/dataset_batch.h"
#include "runtime/dataset/tokenizer.h"
#include "runtime/spec/spec.h"
#include "tests/unit/folder.h"

/* A spec whose data section goes on with `data`. */
static const struct spec *spec_of(struct arena *arena, const char *data, struct error *err)
{
    char *json = alloc_printf("{\"name\": \"t\", \"model\": {\"layers\": [{\"layer\": "
                              "\"Flatten\"}]}, \"data\": {\"dataset\": \"d\"%s%s}}",
                              *data ? ", " : "", data);
    const struct spec *spec = spec_parse(arena, json, strlen(json), err);
    free(json);
    return spec;
}

static const char *put(const char *folder, const char *file, const char *text, size_t size)
{
    folder_put(folder, file, text, size);
    return folder_path(folder);
}

static void open_text(const char *folder, const char *data, struct dataset *dataset)
{
    struct error err;
    struct arena *arena = arena_new();
    const struct spec *spec = spec_of(arena, data, &err);
    CHECK_OK(spec, &err);
    CHECK_OK(dataset_open(folder, &spec->data, 3, dataset, &err), &err);
    arena_free(arena);
}

/* What an example of a part says, as text. */
static void read_window(const struct dataset *dataset, const struct dataset_part *part,
                        int64_t row, char *text, char *next)
{
    struct error err;
    struct dataset_batch batch;
    CHECK_OK(dataset_batch_read(&batch, dataset, part, row, 1, &err), &err);
    struct tokenizer *tokenizer =
        tokenizer_read(dataset->vocabulary, strlen(dataset->vocabulary), &err);
    CHECK_OK(tokenizer, &err);
    char *outs[] = {text, next};
    for (int i = 0; i < 2; i++) {
        struct str out = {0};
        CHECK_INT(batch.feeds[i].dtype, I32);
        tokenizer_decode(tokenizer, batch.feeds[i].data, batch.feeds[i].count, &out);
        CHECK(out.size < 100);
        memcpy(outs[i], str_text(&out), out.size + 1);
        str_release(&out);
    }
    tokenizer_free(tokenizer);
    dataset_batch_release(&batch);
}

TEST(text_becomes_windows_and_what_follows)
{
    struct dataset dataset;
    char text[100], next[100];
    put("two", "b.txt", "fghij", 5);
    open_text(put("two", "a.txt", "abcde", 5), "\"sequence_length\": 4", &dataset);
    CHECK_INT(dataset.train.count, 6);
    CHECK_INT(dataset.validation.count, 0);
    CHECK_INT(dataset.feeds.data.classes, 11);
    CHECK_TEXT(dataset.feeds.data.features[0].name, "text");
    CHECK(shape_equal(&dataset.feeds.data.features[0].shape, &SHAPE(4)));
    CHECK(shape_equal(&dataset.feeds.data.target.shape, &SHAPE(4)));
    read_window(&dataset, &dataset.train, 0, text, next);
    CHECK_TEXT(text, "abcd");
    CHECK_TEXT(next, "bcde");
    read_window(&dataset, &dataset.train, 5, text, next);
    CHECK_TEXT(text, "fghi");
    CHECK_TEXT(next, "ghij");
    dataset_close(&dataset);
    open_text(folder_path("two"), "\"sequence_length\": 2, \"stride\": 3", &dataset);
    CHECK_INT(dataset.train.count, 3);
    read_window(&dataset, &dataset.train, 2, text, next);
    CHECK_TEXT(text, "gh");
    dataset_close(&dataset);
}

/* The end is held out, cut between characters; its windows lie side by side. */
TEST(text_holds_its_end_out)
{
    struct dataset dataset;
    char text[100], next[100];
    static const char bytes[] = "abababababab\xc3\xa4\xc3\xa4"
                                "abab";
    put("end", "x.txt", bytes, sizeof(bytes) - 1);
    open_text(folder_path("end"), "\"sequence_length\": 2, \"validation\": 0.35", &dataset);
    CHECK_INT(dataset.train.count, 10 + 1); /* 13 of 20 bytes: in the first umlaut, so 14 */
    CHECK_INT(dataset.validation.count, 2);
    CHECK(dataset_eval(&dataset) == &dataset.validation);
    read_window(&dataset, &dataset.validation, 0, text, next);
    CHECK_TEXT(text, "\xc3\xa4"
                     "a");
    read_window(&dataset, &dataset.validation, 1, text, next);
    CHECK_TEXT(text, "ba");
    CHECK_TEXT(next, "ab");
    dataset_close(&dataset);
}

/* What only the part that is held out has is unknown. */
TEST(text_learns_from_the_part_to_train_on)
{
    struct dataset dataset;
    char text[100], next[100];
    put("parts", "train.txt", "abcabc", 6);
    put("parts", "validation.txt", "xaxb", 4);
    put("parts", "test.txt", "ccc", 3);
    open_text(put("parts", "notes.md", "?", 1), "\"sequence_length\": 2", &dataset);
    CHECK_INT(dataset.feeds.data.classes, 4);
    CHECK_INT(dataset.test.count, 1);
    CHECK_INT(dataset.validation.count, 1);
    read_window(&dataset, &dataset.validation, 0, text, next);
    CHECK_TEXT(text, "\xef\xbf\xbd"
                     "a");
    dataset_close(&dataset);
    open_text(folder_path("parts"), "\"sequence_length\": 1, \"tokenizer\": {\"bpe\": 257}",
              &dataset);
    CHECK_INT(dataset.feeds.data.classes, 257);
    read_window(&dataset, &dataset.train, 0, text, next);
    CHECK_TEXT(text, "ab");
    CHECK_TEXT(next, "c");
    dataset_close(&dataset);
}

/* For a model that was trained on another text: its tokens, not new ones. */
TEST(text_takes_the_vocabulary_of_a_model)
{
    struct error err;
    struct dataset first, second;
    char text[100], next[100];
    struct arena *arena = arena_new();
    const struct spec *spec = spec_of(arena, "\"sequence_length\": 2", &err);
    CHECK_OK(spec, &err);
    open_text(put("model", "a.txt", "xyz", 3), "\"sequence_length\": 2", &first);
    put("other", "a.txt", "aazyx", 5);
    struct dataset_source source = {
        .folder = folder_path("other"), .data = &spec->data, .vocabulary = first.vocabulary};
    CHECK_OK(dataset_open_from(&source, &second, &err), &err);
    CHECK_INT(second.feeds.data.classes, 4);
    CHECK_TEXT(second.vocabulary, first.vocabulary);
    read_window(&second, &second.train, 2, text, next);
    CHECK_TEXT(text, "zy");
    dataset_close(&first);
    dataset_close(&second);
    source.vocabulary = "{}";
    CHECK_FAILS(dataset_open_from(&source, &second, &err), &err, DATA_LOSS);
    arena_free(arena);
}

TEST(text_that_cannot_be_is_refused)
{
    static const struct {
        const char *folder, *data;
        enum error_code code;
        const char *text, *pointer;
    } bad[] = {
        {"good", "", INVALID, "sequence_length is missing", "/data/sequence_length"},
        {"good", "\"sequence_length\": 6", INVALID, "less than the 6 tokens",
         "/data/sequence_length"},
        {"good", "\"sequence_length\": 2, \"validation\": 2", INVALID, "as 0.1",
         "/data/validation"},
        {"good", "\"sequence_length\": 2, \"validation\": 0.2", INVALID,
         "of the part to validate with", "/data/sequence_length"},
        {"broken", "\"sequence_length\": 1", DATA_LOSS, "/b.txt: at byte 2: 0xff is not UTF-8",
         ""},
        {"none", "\"sequence_length\": 1", INVALID, "no text", ""},
        {"good", "\"skip_gram\": {\"window\": 1}", INVALID, "at least 2", ""},
    };
    put("good", "a.txt", "abcdef", 6);
    put("none", "a.txt", "", 0);
    put("broken", "a.txt", "abcdef", 6);
    put("broken", "b.txt", "ab\xff", 3);
    for (int i = 0; i < ARRAY_LEN(bad); i++) {
        struct error err;
        struct dataset dataset;
        struct arena *arena = arena_new();
        const struct spec *spec = spec_of(arena, bad[i].data, &err);
        CHECK_OK(spec, &err);
        CHECK_FAILS(dataset_open(folder_path(bad[i].folder), &spec->data, 0, &dataset, &err),
                    &err, bad[i].code);
        if (!strstr(err.text, bad[i].text) || strcmp(err.pointer, bad[i].pointer) != 0)
            CHECK_STOP("%s at %s, not: %s", err.text, err.pointer, bad[i].text);
        arena_free(arena);
    }
}

/* --- pairs --- */

static const char rhyme[] = "one two three four five one two three four five six";

TEST(pairs_hide_a_neighbour_among_other_words)
{
    struct dataset dataset;
    struct dataset_batch batch;
    struct error err;
    int places[4] = {0};
    put("words", "a.txt", rhyme, sizeof(rhyme) - 1);
    open_text(folder_path("words"), "\"skip_gram\": {\"window\": 1, \"negatives\": 3}",
              &dataset);
    CHECK_INT(dataset.train.count, 20);
    CHECK_INT(dataset.feeds.data.classes, 4);
    CHECK_INT(dataset.feeds.data.features_count, 2);
    CHECK(shape_equal(&dataset.feeds.data.features[1].shape, &SHAPE(4)));
    /* In the order of frequency, then of letters. */
    static const char *const words[] = {"", "five", "four", "one", "three", "two", "six"};
    CHECK_OK(dataset_batch_read(&batch, &dataset, &dataset.train, 0, 20, &err), &err);
    const int32_t *word = batch.feeds[0].data, *context = batch.feeds[1].data;
    const int32_t *which = batch.feeds[2].data;
    for (int i = 0; i < 20; i++) {
        CHECK(word[i] >= 1 && word[i] <= 6 && which[i] >= 0 && which[i] < 4);
        places[which[i]]++;
        char near[2][20];
        int32_t neighbour = context[4 * i + which[i]];
        snprintf(near[0], sizeof(near[0]), "%s %s", words[word[i]], words[neighbour]);
        snprintf(near[1], sizeof(near[1]), "%s %s", words[neighbour], words[word[i]]);
        CHECK(strstr(rhyme, near[0]) || strstr(rhyme, near[1]));
        for (int c = 0; c < 4; c++) {
            CHECK(context[4 * i + c] >= 1 && context[4 * i + c] <= 6);
            CHECK(c == which[i] || context[4 * i + c] != neighbour);
        }
    }
    for (int p = 0; p < 4; p++)
        CHECK(places[p] > 0);
    dataset_batch_release(&batch);
    dataset_close(&dataset);
}

TEST(pairs_thin_frequent_words_out)
{
    struct dataset dataset;
    char *text = alloc_bytes(40001);
    for (int i = 0; i < 10000; i++)
        memcpy(text + 4 * i, i % 10 ? "the " : "odd ", 4);
    put("many", "a.txt", text, 40000);
    open_text(folder_path("many"), "\"skip_gram\": {\"window\": 1}", &dataset);
    int64_t all = dataset.train.count;
    CHECK_INT(all, 2 * 9999);
    dataset_close(&dataset);
    open_text(folder_path("many"), "\"skip_gram\": {\"window\": 1, \"subsample\": 0.1}",
              &dataset);
    /* sqrt(0.1 / 0.9) + 0.1 / 0.9 of nine tenths, and the tenth: half of them. */
    CHECK(dataset.train.count > all * 45 / 100 && dataset.train.count < all * 55 / 100);
    dataset_close(&dataset);
    free(text);
}

/* --- the spec --- */

TEST(specs_of_texts_come_back)
{
    static const char *const texts[] = {
        "\"tokenizer\": {\"bpe\": 512}, \"sequence_length\": 64, \"stride\": 2",
        "\"tokenizer\": {\"words\": 300}, \"skip_gram\": {\"window\": 3, \"negatives\": 7, "
        "\"subsample\": 0.001}",
        "\"sequence_length\": 5",
        "\"image_size\": [20, 30], \"image_channels\": 1, \"augment\": [\"RandomFlip\", "
        "{\"name\": \"RandomCrop\", \"height\": 2, \"width\": 3}]",
    };
    for (int i = 0; i < ARRAY_LEN(texts); i++) {
        struct error err;
        struct arena *arena = arena_new();
        struct str once = {0}, twice = {0};
        const struct spec *spec = spec_of(arena, texts[i], &err);
        CHECK_OK(spec, &err);
        spec_to_json(spec, &once);
        spec = spec_parse(arena, str_text(&once), once.size, &err);
        CHECK_OK(spec, &err);
        spec_to_json(spec, &twice);
        CHECK_TEXT(str_text(&once), str_text(&twice));
        CHECK(i != 0 || spec->data.text.vocabulary == 512);
        CHECK(i != 1 || spec->data.text.negatives == 7);
        CHECK(i != 2 || spec->data.text.tokenizer == TOKENIZER_CHARACTERS);
        CHECK(i != 3 || (spec->data.augment_count == 2 && spec->data.image_size[1] == 30));
        str_release(&once);
        str_release(&twice);
        arena_free(arena);
    }
}

TEST(specs_of_texts_are_read_strictly)
{
    static const struct {
        const char *data, *pointer, *text;
    } bad[] = {
        {"\"tokenizer\": \"letters\"", "/data/tokenizer", "\"characters\""},
        {"\"tokenizer\": {\"bpe\": 255}", "/data/tokenizer/bpe", "256"},
        {"\"tokenizer\": {\"words\": 1}", "/data/tokenizer/words", "2"},
        {"\"tokenizer\": {\"bpe\": 300, \"words\": 4}", "/data/tokenizer", "characters"},
        {"\"tokenizer\": {\"letters\": 3}", "/data/tokenizer/letters", "letters"},
        {"\"sequence_length\": 0", "/data/sequence_length", "1"},
        {"\"stride\": 0", "/data/stride", "1"},
        {"\"skip_gram\": {\"window\": 0}", "/data/skip_gram/window", "1"},
        {"\"skip_gram\": {\"widow\": 1}", "/data/skip_gram/widow", "window"},
        {"\"skip_gram\": {}, \"sequence_length\": 4", "/data/sequence_length", "one of"},
        {"\"image_size\": [0, 3]", "/data/image_size", "image_size"},
        {"\"image_channels\": 2", "/data/image_channels", "1 (grey)"},
        {"\"augment\": {}", "/data/augment", "a list"},
        {"\"augment\": [\"RandomCrop\"]", "/data/augment/0/height", "height"},
        {"\"augment\": [\"RandomFlip\", \"Flip\"]", "/data/augment/1", "Flip"},
        {"\"augment\": [{\"name\": \"RandomFlip\", \"mode\": 1}]", "/data/augment/0/mode", ""},
        {"\"augment\": [null]", "/data/augment/0", "null"},
    };
    for (int i = 0; i < ARRAY_LEN(bad); i++) {
        struct error err;
        struct arena *arena = arena_new();
        CHECK_FAILS(spec_of(arena, bad[i].data, &err), &err, INVALID);
        if (strcmp(err.pointer, bad[i].pointer) != 0 || !strstr(err.text, bad[i].text))
            CHECK_STOP("%s: %s at %s", bad[i].data, err.text, err.pointer);
        arena_free(arena);
    }
}
