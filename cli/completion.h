/*
 * completion.h - what a shell's script is made from, and one writer for each shell.
 */
#pragma once

#include "cli/verbs.h"

#define COMPLETION_OPTIONS_MAX 40 /* of one verb */

enum completion_value { VALUE_NONE, VALUE_NUMBER, VALUE_TEXT };

struct completion_option {
    char name[40]; /* "--dir", "-f" */
    enum completion_value value;
    char help[160];
};

/* What stands after a verb. */
enum completion_word { WORD_NONE, WORD_FILES, WORD_SPEC, WORD_JOBS, WORD_CHOICES };

struct completion {
    const struct verb *verb;
    enum completion_word word;
    char choices[100]; /* of WORD_CHOICES: "add make list", then files */
    struct completion_option options[COMPLETION_OPTIONS_MAX];
    int options_count;
};

/* Print the script on stdout. */
void completion_bash_put(const struct completion *verbs, int count);
void completion_zsh_put(const struct completion *verbs, int count);
void completion_fish_put(const struct completion *verbs, int count);

/* Prints the names of the shipped examples, a space between them. */
void completion_put_examples(void);

/*
 * Prints `text` for between single quotes: characters in `special` get a backslash, a quote
 * becomes `quote`.
 */
void completion_put_quoted(const char *text, const char *special, const char *quote);

/* Prints the numbers of jobs, in any shell. */
#define COMPLETION_JOBS "trainyard jobs 2>/dev/null | awk 'NR > 1 { print $1 }'"
