/* options.c - a small strict parser of arguments. */

#include <errno.h>

#include "base/error.h"
#include "base/nearest.h"
#include "cli/options.h"

#define OPTIONS_ROWS_MAX 40 /* of one verb */

static const struct option_row *find_row(const struct option_row *rows, const char *name,
                                         size_t size)
{
    for (; rows->name; rows++)
        if (strlen(rows->name) == size && memcmp(rows->name, name, size) == 0)
            return rows;
    return NULL;
}

static bool unknown_option(const struct option_row *rows, const char *given, struct error *err)
{
    char known[400] = "";
    const char *names[OPTIONS_ROWS_MAX + 1] = {0};
    size_t used = 0;
    for (int i = 0; rows[i].name && i < OPTIONS_ROWS_MAX && used < sizeof(known); i++) {
        names[i] = rows[i].name;
        used += (size_t)snprintf(known + used, sizeof(known) - used, " %s%s",
                                 rows[i].name[1] ? "--" : "-", rows[i].name);
    }
    const char *nearest = nearest_name(given + strspn(given, "-"), names);
    if (nearest)
        return fail(err, INVALID, "there is no option %.60s; did you mean %s%s?", given,
                    nearest[1] ? "--" : "-", nearest);
    return fail(err, INVALID, "there is no option %.60s; there are:%s", given,
                *known ? known : " none");
}

static bool set_value(const struct option_row *row, const char *value, struct error *err)
{
    if (row->kind == OPTION_TEXT) {
        *(const char **)row->into = value;
        return true;
    }
    if (row->kind == OPTION_LIST) {
        struct options_words *list = row->into;
        if (list->count == OPTIONS_WORDS_MAX)
            return fail(err, INVALID, "--%s is given more than %d times", row->name,
                        OPTIONS_WORDS_MAX);
        list->word[list->count++] = value;
        return true;
    }
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (end == value || *end || errno)
        return fail(err, INVALID, "--%s is '%.60s'; it must be a whole number", row->name,
                    value);
    *(int64_t *)row->into = number;
    return true;
}

bool options_parse(int argc, char **argv, const struct option_row *rows, int words_min,
                   int words_max, struct options_words *words, struct error *err)
{
    bool only_words = false;
    words->count = 0;
    for (int i = 1; i < argc; i++) {
        const char *given = argv[i];
        if (only_words || given[0] != '-' || !given[1]) {
            if (words->count == words_max || words->count == OPTIONS_WORDS_MAX)
                return fail(err, INVALID, "'%.60s' is one word too many", given);
            words->word[words->count++] = given;
            continue;
        }
        if (strcmp(given, "--") == 0) {
            only_words = true;
            continue;
        }
        const char *name = given + 1 + (given[1] == '-');
        size_t size = strcspn(name, "=");
        const struct option_row *row = find_row(rows, name, size);
        if (!row || (given[1] == '-') != (row->name[1] != 0))
            return unknown_option(rows, given, err);
        if (row->kind == OPTION_FLAG) {
            if (name[size])
                return fail(err, INVALID, "--%s takes no value", row->name);
            *(bool *)row->into = true;
            continue;
        }
        if (!name[size] && i + 1 == argc)
            return fail(err, INVALID, "--%s needs a value", row->name);
        if (!set_value(row, name[size] ? name + size + 1 : argv[++i], err))
            return false;
    }
    if (words->count < words_min)
        return fail(err, INVALID, "a word is missing after '%s'",
                    words->count ? words->word[words->count - 1] : argv[0]);
    return true;
}

bool options_need(const char *value, const char *name, const char *what, struct error *err)
{
    return value || fail(err, INVALID, "--%s is missing: %s", name, what);
}

void options_print(const struct option_row *rows)
{
    for (; rows->name; rows++) {
        char left[40];
        static const char *const values[] = {" TEXT", " N", "", " TEXT"};
        snprintf(left, sizeof(left), "%s%s%s", rows->name[1] ? "--" : "-", rows->name,
                 values[rows->kind]);
        printf("  %-22s %s\n", left, rows->help);
    }
}
