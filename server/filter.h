/*
 * filter.h - expressions that choose rows of a list: "metrics.loss < 0.3 and not user = 'ana'".
 *
 *     or:          and {"or" and}
 *     and:         not {"and" not}
 *     not:         "not" not | "(" or ")" | FIELD OPERATOR VALUE
 *     OPERATOR:    = == != < <= > >= ~ (the text has it within, in any case)
 *     VALUE:       a number, 'text' or "text" (doubled: the quote itself), true, false, null
 *     FIELD:       letters, digits and _ . / - or `anything else`
 *
 * Only a field that is not there is null.  A comparison with what is not there is false, but
 * for "= null"; "!=" is the opposite of "=".  Of a list "=" and "~" ask whether any of it is
 * such.
 */
#pragma once

#include "base/base.h"

struct arena;
struct error;
struct filter;

enum filter_kind { FILTER_NULL, FILTER_NUMBER, FILTER_TEXT, FILTER_TRUTH, FILTER_ANY };

struct filter_value {
    enum filter_kind kind;
    double number; /* of a truth 0 or 1 */
    const char *text;
    const char *const *list; /* of texts, in place of `text`; NULL: it is one text */
    int list_count;
};

/* What a field of that name may be; FILTER_ANY when only the row knows.  False: there is none,
 * and the error says which there are. */
typedef bool filter_field(const char *name, enum filter_kind *kind, struct error *err);

/* All in the arena.  NULL and INVALID, naming the column (from 1), when it is no expression. */
struct filter *filter_parse(struct arena *arena, const char *text, filter_field *field,
                            struct error *err) CHECKED;

/* The value that a row has in a field. */
typedef bool filter_lookup(void *row, const char *field, struct filter_value *value,
                           struct error *err);

/* Whether a row is chosen.  Fields are asked for as far as they decide. */
bool filter_match(const struct filter *filter, filter_lookup *lookup, void *row, bool *matches,
                  struct error *err) CHECKED;
