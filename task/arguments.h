/*
 * arguments.h - the arguments of a mode: "--name value", "--flag", and words.
 */
#pragma once

#include "base/base.h"

struct error;

struct argument {
    const char *name;  /* "--steps" */
    const char **text; /* one of these three is where it goes */
    int64_t *number;   /* from 0 to `max` */
    bool *flag;
    int64_t max;
};

/*
 * Reads them by the table; at most `words_max` words go into `words`, and `*words_count` is how
 * many there were.  "-" is a word.  Fails with INVALID: an unknown option (with the nearest
 * one), one without its value or with a wrong one, a word too many.
 */
bool arguments_read(int argc, char **argv, const struct argument *rows, int rows_count,
                    const char **words, int words_max, int *words_count,
                    struct error *err) CHECKED;

/* The processors that this process may use. */
int arguments_cpus(void);

/* So many threads for kernels, 0: one for each processor; returns how many. */
int arguments_set_threads(int64_t threads);

/* The exit code of a mode that failed: 1 when it is our fault, 2 when it is the user's. */
int arguments_exit_code(const struct error *err);
