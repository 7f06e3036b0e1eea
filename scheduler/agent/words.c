/* words.c - lists of texts for exec. */

#include "scheduler/agent/words.h"
#include "base/alloc.h"
#include "base/arena.h"

void words_add(struct words *words, const char *word)
{
    words->list = alloc_grow(words->list, words->count, &words->capacity, sizeof(*words->list));
    words->list[words->count++] = arena_text(words->arena, word);
    words->list = alloc_grow(words->list, words->count, &words->capacity, sizeof(*words->list));
    words->list[words->count] = NULL;
}

void words_option(struct words *words, const char *name, const char *value)
{
    words_add(words, name);
    words_add(words, value);
}

void words_option_int(struct words *words, const char *name, int64_t value)
{
    words_option(words, name, arena_printf(words->arena, "%lld", (long long)value));
}

void words_variable(struct words *words, const char *name, const char *value)
{
    size_t size = strlen(name);
    char *word = arena_printf(words->arena, "%s=%s", name, value);
    for (int i = 0; i < words->count; i++) {
        if (strncmp(words->list[i], word, size + 1) == 0) {
            words->list[i] = word;
            return;
        }
    }
    words_add(words, word);
}

void words_variable_int(struct words *words, const char *name, int64_t value)
{
    words_variable(words, name, arena_printf(words->arena, "%lld", (long long)value));
}

void words_release(struct words *words)
{
    free(words->list);
}
