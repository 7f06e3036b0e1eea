/*
 * words.h - the words of a command line, or of an environment, as they are put together.
 */
#pragma once

#include "base/base.h"

struct arena;

struct words {
    struct arena *arena; /* of the words; the list itself is released by words_release() */
    char **list;         /* ended by a NULL */
    int count;
    int capacity;
};

void words_add(struct words *words, const char *word);

/* Two words: a name and its value. */
void words_option(struct words *words, const char *name, const char *value);
void words_option_int(struct words *words, const char *name, int64_t value);

/* One word, NAME=value, in the place of another of that name. */
void words_variable(struct words *words, const char *name, const char *value);
void words_variable_int(struct words *words, const char *name, int64_t value);

void words_release(struct words *words);
