/*
 * options.h - the arguments of a verb: "--name value", "--name=value", "--flag", and words.
 */
#pragma once

#include "base/base.h"

struct error;

enum option_kind { OPTION_TEXT, OPTION_NUMBER, OPTION_FLAG, OPTION_LIST };

struct option_row {
    const char *name; /* "dir"; NULL ends the table */
    enum option_kind kind;
    void *into; /* const char **, int64_t *, bool *; of a list, which is given again and again,
                   struct options_words * */
    const char *help;
};

#define OPTIONS_WORDS_MAX 64

/* Words that are no options, in order. */
struct options_words {
    const char *word[OPTIONS_WORDS_MAX];
    int count;
};

/*
 * Reads argv[1..argc).  `-f` style names are given as one letter ("f").  After "--" all are
 * words.  Fails with INVALID, naming the option and what there is, when one is unknown, lacks
 * its value, or is no number; and when there are fewer than words_min or more than words_max
 * words.
 */
bool options_parse(int argc, char **argv, const struct option_row *rows, int words_min,
                   int words_max, struct options_words *words, struct error *err) CHECKED;

/* Whether an option that must be there is: INVALID, "--NAME is missing: WHAT", if not. */
bool options_need(const char *value, const char *name, const char *what,
                  struct error *err) CHECKED;

/* Prints the table, one row a line. */
void options_print(const struct option_row *rows);
