/* tokenizer_test.c - text to tokens and back: characters, byte pairs, words; vocabularies. */

#include "base/alloc.h"
#include "base/str.h"
#include "runtime/dataset/tokenizer.h"
#include "tests/unit/test.h"

static struct tokenizer *learn(enum tokenizer_kind kind, int64_t size_max, const char *text,
                               size_t size)
{
    struct error err;
    struct tokenizer *tokenizer = tokenizer_learn(kind, size_max, text, size, &err);
    CHECK_OK(tokenizer, &err);
    return tokenizer;
}

static struct tokenizer_ids encode(const struct tokenizer *tokenizer, const char *text,
                                   size_t size)
{
    struct tokenizer_ids ids = {0};
    struct error err;
    CHECK_OK(tokenizer_encode(tokenizer, text, size, &ids, &err), &err);
    return ids;
}

/* The text that its tokens stand for is the text. */
static void check_round_trip(const struct tokenizer *tokenizer, const char *text, size_t size)
{
    struct tokenizer_ids ids = encode(tokenizer, text, size);
    struct str back = {0};
    tokenizer_decode(tokenizer, ids.ids, ids.count, &back);
    CHECK_INT(back.size, size);
    CHECK(!memcmp(str_text(&back), text, size));
    tokenizer_ids_release(&ids);
    str_release(&back);
}

/* What is written reads back as the same, byte for byte. */
static void check_json(const struct tokenizer *tokenizer, const char *text, size_t size)
{
    struct str json = {0}, again = {0};
    struct error err;
    tokenizer_write(tokenizer, &json);
    struct tokenizer *read = tokenizer_read(str_text(&json), json.size, &err);
    CHECK_OK(read, &err);
    tokenizer_write(read, &again);
    CHECK_TEXT(str_text(&again), str_text(&json));
    CHECK_INT(tokenizer_size(read), tokenizer_size(tokenizer));
    CHECK_INT(tokenizer_kind(read), tokenizer_kind(tokenizer));
    struct tokenizer_ids a = encode(tokenizer, text, size), b = encode(read, text, size);
    CHECK_INT(a.count, b.count);
    CHECK(!a.count || !memcmp(a.ids, b.ids, (size_t)a.count * sizeof(*a.ids)));
    tokenizer_ids_release(&a);
    tokenizer_ids_release(&b);
    str_release(&json);
    str_release(&again);
    tokenizer_free(read);
}

TEST(characters_are_the_sorted_set_of_code_points)
{
    static const char text[] = "b\xc3\xa4"
                               "a\0b\xf0\x9f\x99\x82\xe2\x82\xac";
    struct tokenizer *tokenizer = learn(TOKENIZER_CHARACTERS, 0, text, sizeof(text) - 1);
    CHECK_INT(tokenizer_size(tokenizer), 7);
    struct tokenizer_ids ids = encode(tokenizer, text, sizeof(text) - 1);
    static const int32_t wanted[] = {3, 4, 2, 1, 3, 6, 5};
    CHECK_INT(ids.count, ARRAY_LEN(wanted));
    CHECK(!memcmp(ids.ids, wanted, sizeof(wanted)));
    tokenizer_ids_release(&ids);
    check_round_trip(tokenizer, text, sizeof(text) - 1);
    check_json(tokenizer, text, sizeof(text) - 1);
    tokenizer_free(tokenizer);
}

TEST(characters_that_are_new_are_unknown)
{
    struct tokenizer *tokenizer = learn(TOKENIZER_CHARACTERS, 0, "ab", 2);
    struct tokenizer_ids ids = encode(tokenizer, "a?\xc3\xa4", 4);
    CHECK_INT(ids.count, 3);
    CHECK_INT(ids.ids[1], 0);
    CHECK_INT(ids.ids[2], 0);
    const int32_t odd[] = {1, 0, -1, 3};
    struct str text = {0};
    tokenizer_decode(tokenizer, odd, 4, &text);
    CHECK_TEXT(str_text(&text), "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    str_release(&text);
    tokenizer_ids_release(&ids);
    tokenizer_free(tokenizer);
}

TEST(characters_name_the_byte_that_is_not_utf8)
{
    static const struct {
        const char *text;
        size_t size;
        const char *says;
    } bad[] = {
        {"ab\xff", 3, "at byte 2: 0xff"},           {"\xc3", 1, "at byte 0: 0xc3"},
        {"a\xc0\xaf", 3, "at byte 1: 0xc0"},        {"\xed\xa0\x80", 3, "at byte 0: 0xed"},
        {"\xf4\x90\x80\x80", 4, "at byte 0: 0xf4"}, {"abc\xe2\x82", 5, "at byte 3: 0xe2"}};
    struct error err;
    struct tokenizer *tokenizer = learn(TOKENIZER_CHARACTERS, 0, "ab", 2);
    for (int i = 0; i < ARRAY_LEN(bad); i++) {
        struct tokenizer_ids ids = {0};
        CHECK_FAILS(tokenizer_learn(TOKENIZER_CHARACTERS, 0, bad[i].text, bad[i].size, &err),
                    &err, DATA_LOSS);
        CHECK(strstr(err.text, bad[i].says));
        CHECK_FAILS(tokenizer_check(TOKENIZER_CHARACTERS, bad[i].text, bad[i].size, &err), &err,
                    DATA_LOSS);
        CHECK(strstr(err.text, bad[i].says));
        CHECK_OK(tokenizer_check(TOKENIZER_BYTES, bad[i].text, bad[i].size, &err), &err);
        CHECK_FAILS(tokenizer_encode(tokenizer, bad[i].text, bad[i].size, &ids, &err), &err,
                    DATA_LOSS);
        CHECK(strstr(err.text, bad[i].says));
        tokenizer_ids_release(&ids);
    }
    tokenizer_free(tokenizer);
    for (int kind = 0; kind <= TOKENIZER_WORDS; kind++)
        CHECK_FAILS(tokenizer_learn(kind, 300, "", 0, &err), &err, INVALID);
}

TEST(bytes_join_the_most_frequent_pair_first)
{
    /* "low" 3 times, "lower" 2: lo (5), then low (5), then " low" (4: all but the first). */
    static const char text[] = "low low low lower lower";
    struct tokenizer *tokenizer = learn(TOKENIZER_BYTES, 258, text, sizeof(text) - 1);
    CHECK_INT(tokenizer_size(tokenizer), 258);
    struct tokenizer_ids ids = encode(tokenizer, "low", 3);
    CHECK_INT(ids.count, 1);
    CHECK_INT(ids.ids[0], 257);
    tokenizer_ids_release(&ids);
    check_round_trip(tokenizer, text, sizeof(text) - 1);
    check_json(tokenizer, text, sizeof(text) - 1);
    tokenizer_free(tokenizer);
}

/* The same by looking at every pair anew for each join. */
static int64_t slow_join(int32_t tokens[][64], int *counts, int pieces, int32_t *left,
                         int32_t *right)
{
    int64_t best = 1;
    for (int p = 0; p < pieces; p++) {
        for (int i = 0; i + 1 < counts[p]; i++) {
            int32_t a = tokens[p][i], b = tokens[p][i + 1];
            int64_t weight = 0;
            for (int q = 0; q < pieces; q++)
                for (int j = 0; j + 1 < counts[q]; j++)
                    weight += tokens[q][j] == a && tokens[q][j + 1] == b;
            if (weight > best ||
                (weight == best && best > 1 && (a < *left || (a == *left && b < *right)))) {
                best = weight;
                *left = a;
                *right = b;
            }
        }
    }
    return best;
}

TEST(bytes_join_as_the_slow_way_does)
{
    uint64_t random = 7;
    for (int round = 0; round < 40; round++) {
        /* Words of few letters, so that pairs are frequent; no runs of one letter, whose pairs
         * overlap and are counted differently. */
        char text[400];
        static int32_t tokens[100][64];
        int counts[100] = {0}, pieces = 0;
        size_t size = 0;
        while (size < 300 && pieces < 100) {
            random = random * UINT64_C(6364136223846793005) + 1;
            int letters = 2 + (int)(random >> 60);
            if (size)
                text[size++] = ' ';
            char before = 0;
            for (int i = 0; i < letters; i++) {
                random = random * UINT64_C(6364136223846793005) + 1;
                char letter = (char)('a' + (random >> 33) % 4);
                if (letter == before)
                    letter = (char)(letter == 'd' ? 'a' : letter + 1);
                text[size++] = before = letter;
            }
            size_t begin = size - (size_t)letters - (pieces > 0);
            for (size_t i = begin; i < size; i++)
                tokens[pieces][counts[pieces]++] = (unsigned char)text[i];
            pieces++;
        }
        struct tokenizer *tokenizer = learn(TOKENIZER_BYTES, 256 + 12, text, size);
        int64_t joins = tokenizer_size(tokenizer) - 256;
        for (int64_t join = 0; join < joins; join++) {
            int32_t left = -1, right = -1;
            if (slow_join(tokens, counts, pieces, &left, &right) < 2)
                break;
            for (int p = 0; p < pieces; p++) {
                int kept = 0;
                for (int i = 0; i < counts[p]; i++) {
                    bool joins_here =
                        i + 1 < counts[p] && tokens[p][i] == left && tokens[p][i + 1] == right;
                    tokens[p][kept++] = joins_here ? (int32_t)(256 + join) : tokens[p][i];
                    i += joins_here;
                }
                counts[p] = kept;
            }
        }
        struct tokenizer_ids ids = encode(tokenizer, text, size);
        int64_t at = 0;
        for (int p = 0; p < pieces; p++) {
            for (int i = 0; i < counts[p]; i++) {
                CHECK(at < ids.count);
                CHECK_INT(ids.ids[at++], tokens[p][i]);
            }
        }
        CHECK_INT(at, ids.count);
        tokenizer_ids_release(&ids);
        tokenizer_free(tokenizer);
    }
}

TEST(bytes_take_any_bytes_there_and_back)
{
    size_t size = 20000;
    char *text = alloc_bytes(size);
    uint64_t random = 3;
    for (size_t i = 0; i < size; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        /* Runs, letters, blanks and anything. */
        text[i] = i % 5000 < 1000   ? 'a'
                  : i % 5000 < 2000 ? ' '
                  : i % 5000 < 3000 ? (char)("ab \n"[random >> 62])
                                    : (char)(random >> 56);
    }
    struct tokenizer *tokenizer = learn(TOKENIZER_BYTES, 700, text, size);
    CHECK(tokenizer_size(tokenizer) > 256 && tokenizer_size(tokenizer) <= 700);
    check_round_trip(tokenizer, text, size);
    check_json(tokenizer, text, size);
    struct tokenizer_ids ids = encode(tokenizer, text, size);
    CHECK(ids.count < (int64_t)size / 2); /* it was worth it */
    tokenizer_ids_release(&ids);
    tokenizer_free(tokenizer);
    free(text);
}

TEST(bytes_of_a_text_without_pairs_are_bytes)
{
    struct tokenizer *tokenizer = learn(TOKENIZER_BYTES, 1000, "abcdef", 6);
    CHECK_INT(tokenizer_size(tokenizer), 256);
    check_round_trip(tokenizer, "\xff\0x", 3);
    tokenizer_free(tokenizer);
}

TEST(words_are_the_most_frequent_ones_in_small_letters)
{
    static const char text[] = "The cat's hat; the CAT'S, 'the' dog. A hat 42";
    struct tokenizer *tokenizer = learn(TOKENIZER_WORDS, 4, text, sizeof(text) - 1);
    CHECK_INT(tokenizer_size(tokenizer), 4); /* unknown, the, cat's, hat */
    struct tokenizer_ids ids = encode(tokenizer, text, sizeof(text) - 1);
    static const int32_t wanted[] = {1, 2, 3, 1, 2, 1, 0, 0, 3, 0};
    CHECK_INT(ids.count, ARRAY_LEN(wanted));
    CHECK(!memcmp(ids.ids, wanted, sizeof(wanted)));
    struct str back = {0};
    tokenizer_decode(tokenizer, ids.ids, 3, &back);
    CHECK_TEXT(str_text(&back), "the cat's hat ");
    str_release(&back);
    tokenizer_ids_release(&ids);
    check_json(tokenizer, text, sizeof(text) - 1);
    tokenizer_free(tokenizer);
    tokenizer = learn(TOKENIZER_WORDS, 9, "a\xff \xc3\xa4", 5);
    check_json(tokenizer, "a\xff", 2);
    tokenizer_free(tokenizer);
}

TEST(vocabularies_that_are_damaged_are_refused)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"version\": 2, \"tokenizer\": \"characters\", \"characters\": [97]}",
        "{\"version\": 1, \"tokenizer\": \"letters\"}",
        "{\"version\": 1, \"tokenizer\": 1}",
        "{\"version\": 1, \"tokenizer\": \"characters\"}",
        "{\"version\": 1, \"tokenizer\": \"characters\", \"characters\": []}",
        "{\"version\": 1, \"tokenizer\": \"characters\", \"characters\": [98, 97]}",
        "{\"version\": 1, \"tokenizer\": \"characters\", \"characters\": [97, 97]}",
        "{\"version\": 1, \"tokenizer\": \"characters\", \"characters\": [55296]}",
        "{\"version\": 1, \"tokenizer\": \"characters\", \"characters\": [1114112]}",
        "{\"version\": 1, \"tokenizer\": \"characters\", \"characters\": \"a\"}",
        "{\"version\": 1, \"tokenizer\": \"bpe\", \"bpe\": {}}",
        "{\"version\": 1, \"tokenizer\": \"bpe\", \"bpe\": [1]}",
        "{\"version\": 1, \"tokenizer\": \"bpe\", \"bpe\": [[1, 256]]}",
        "{\"version\": 1, \"tokenizer\": \"bpe\", \"bpe\": [[1, -1]]}",
        "{\"version\": 1, \"tokenizer\": \"bpe\", \"bpe\": [[1, 2, 3]]}",
        "{\"version\": 1, \"tokenizer\": \"bpe\", \"bpe\": [[1, 2], [1, 2]]}",
        "{\"version\": 1, \"tokenizer\": \"bpe\", \"bpe\": [[97, 97], [256, 256], [257, "
        "257], [258, 258], [259, 259], [260, 260], [261, 261]]}",
        "{\"version\": 1, \"tokenizer\": \"words\", \"words\": \"a\"}",
        "{\"version\": 1, \"tokenizer\": \"words\", \"words\": [\"\"]}",
        "{\"version\": 1, \"tokenizer\": \"words\", \"words\": [[256]]}",
        "{\"version\": 1, \"tokenizer\": \"words\", \"words\": [\"a\", \"a\"]}",
    };
    for (int i = 0; i < ARRAY_LEN(bad); i++) {
        struct error err = {0};
        CHECK_FAILS(tokenizer_read(bad[i], strlen(bad[i]), &err), &err, DATA_LOSS);
        CHECK(strstr(err.text, "vocabulary"));
    }
}

TEST(learning_megabytes_takes_seconds_at_most)
{
    const char *shared = getenv("TRAINYARD_SHARED");
    char path[512];
    snprintf(path, sizeof(path), "%s/data/shakespeare/input.txt",
             shared ? shared : "../shared");
    FILE *file = fopen(path, "rb");
    if (!file) {
        puts("skip: no shakespeare/input.txt in the shared data");
        return;
    }
    char *text = alloc_bytes(2000000);
    size_t size = fread(text, 1, 2000000, file);
    fclose(file);
    struct tokenizer *tokenizer = learn(TOKENIZER_BYTES, 4096, text, size);
    CHECK_INT(tokenizer_size(tokenizer), 4096);
    check_round_trip(tokenizer, text, size);
    struct tokenizer_ids ids = encode(tokenizer, text, size);
    CHECK(ids.count < (int64_t)size / 3);
    tokenizer_ids_release(&ids);
    tokenizer_free(tokenizer);
    tokenizer = learn(TOKENIZER_CHARACTERS, 0, text, size);
    CHECK_INT(tokenizer_size(tokenizer), 66);
    check_round_trip(tokenizer, text, size);
    tokenizer_free(tokenizer);
    free(text);
}
