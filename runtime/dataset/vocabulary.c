/* vocabulary.c - words in a map, sorted at the end. */

#include "runtime/dataset/vocabulary.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"

struct vocabulary {
    struct map *numbers; /* of a word: its number + 1, as a pointer */
    const char **words;  /* by number, once sorted */
    int32_t first;       /* number of the first word: 1 behind the unknown */
};

struct vocabulary *vocabulary_new(bool has_unknown)
{
    struct vocabulary *vocabulary = alloc_bytes(sizeof(*vocabulary));
    vocabulary->numbers = map_new();
    vocabulary->first = has_unknown;
    return vocabulary;
}

void vocabulary_free(struct vocabulary *vocabulary)
{
    if (!vocabulary)
        return;
    map_free(vocabulary->numbers);
    free(vocabulary->words);
    free(vocabulary);
}

/* Known is a word by its number + 1. */
static int32_t find(const struct vocabulary *vocabulary, intptr_t known, const char *word,
                    size_t size, struct error *err)
{
    int32_t number = known ? (int32_t)known - 1 : vocabulary->first - 1;
    if (number < 0)
        fail(err, INVALID, "\"%.*s\" is no class of the part to train on",
             (int)(size < 60 ? size : 60), word);
    return number;
}

int32_t vocabulary_number(struct vocabulary *vocabulary, const char *word, size_t size,
                          struct error *err)
{
    intptr_t known = (intptr_t)map_find_n(vocabulary->numbers, word, size);
    if (known || vocabulary->words)
        return find(vocabulary, known, word, size, err);
    if (size && memchr(word, 0, size)) {
        fail(err, INVALID, "a word with a zero byte in it");
        return -1;
    }
    int32_t number = vocabulary->first + map_count(vocabulary->numbers);
    if (number >= VOCABULARY_WORDS_MAX) {
        fail(err, EXHAUSTED, "more than %d different words", VOCABULARY_WORDS_MAX);
        return -1;
    }
    char *text = alloc_text_n(word, size);
    map_set(vocabulary->numbers, text, (void *)(intptr_t)(number + 1));
    free(text);
    return number;
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int32_t *vocabulary_sort(struct vocabulary *vocabulary)
{
    struct map *numbers = vocabulary->numbers;
    int count = map_count(numbers);
    int32_t *after = alloc_array((size_t)count + 1, sizeof(*after));
    vocabulary->words = alloc_array((size_t)count + 1, sizeof(char *));
    vocabulary->words[0] = VOCABULARY_UNKNOWN;
    for (int i = 0; i < count; i++)
        vocabulary->words[vocabulary->first + i] = map_key(numbers, i);
    qsort(vocabulary->words + vocabulary->first, (size_t)count, sizeof(char *), compare_words);
    for (int i = 0; i < count; i++) {
        const char *word = vocabulary->words[vocabulary->first + i];
        intptr_t before = (intptr_t)map_find(numbers, word) - 1;
        after[before] = vocabulary->first + i;
        map_set(numbers, word, (void *)(intptr_t)(vocabulary->first + i + 1));
    }
    return after;
}

int64_t vocabulary_count(const struct vocabulary *vocabulary)
{
    return vocabulary->first + map_count(vocabulary->numbers);
}

const char *const *vocabulary_words(const struct vocabulary *vocabulary)
{
    assert(vocabulary->words);
    return vocabulary->words;
}
