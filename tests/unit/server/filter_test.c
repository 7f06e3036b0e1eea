/* filter_test.c - expressions, and what they say of rows. */

#include "server/filter.h"

#include <math.h>

#include "base/arena.h"
#include "base/str.h"
#include "tests/unit/test.h"

static bool field(const char *name, enum filter_kind *kind, struct error *err)
{
    static const struct {
        const char *name;
        enum filter_kind kind;
    } fields[] = {{"n", FILTER_NUMBER},         {"nan", FILTER_NUMBER},
                  {"none", FILTER_ANY},         {"name", FILTER_TEXT},
                  {"on", FILTER_TRUTH},         {"tags", FILTER_TEXT},
                  {"any thing", FILTER_NUMBER}, {"m.a-b/c", FILTER_NUMBER}};
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (strcmp(fields[i].name, name) == 0) {
            *kind = fields[i].kind;
            return true;
        }
    return fail(err, INVALID, "no field '%s'", name);
}

static bool lookup(void *row, const char *name, struct filter_value *value, struct error *err)
{
    static const char *const tags[] = {"red", "Green"};
    (void)err;
    ++*(int *)row;
    *value = (struct filter_value){.kind = FILTER_NULL};
    if (strcmp(name, "n") == 0 || name[0] == 'm' || strcmp(name, "any thing") == 0)
        *value = (struct filter_value){.kind = FILTER_NUMBER, .number = 0.25};
    else if (strcmp(name, "nan") == 0)
        *value = (struct filter_value){.kind = FILTER_NUMBER, .number = (double)NAN};
    else if (strcmp(name, "name") == 0)
        *value = (struct filter_value){.kind = FILTER_TEXT, .text = "Ana's"};
    else if (strcmp(name, "on") == 0)
        *value = (struct filter_value){.kind = FILTER_TRUTH, .number = 1};
    else if (strcmp(name, "tags") == 0)
        *value = (struct filter_value){.kind = FILTER_TEXT, .list = tags, .list_count = 2};
    return true;
}

/* What the row above says to it; `asked` fields were looked at. */
static bool says(const char *text, int asked)
{
    struct error err;
    struct arena *arena = arena_new();
    int count = 0;
    bool matches;
    const struct filter *filter = filter_parse(arena, text, field, &err);
    if (!filter)
        CHECK_STOP("%s: %s", text, err.text);
    CHECK_OK(filter_match(filter, lookup, &count, &matches, &err), &err);
    CHECK_INT(count, asked);
    arena_free(arena);
    return matches;
}

TEST(filter_compares)
{
    CHECK(says("n = 0.25", 1));
    CHECK(says("n == .25e0", 1));
    CHECK(says("n!=1", 1));
    CHECK(says("n<1", 1));
    CHECK(says("n <= 0.25", 1));
    CHECK(says("n > -1", 1));
    CHECK(says("n >= 0.25", 1));
    CHECK(!says("n > 0.25", 1));
    CHECK(says("name = 'Ana''s'", 1));
    CHECK(says("name = \"Ana's\"", 1));
    CHECK(says("name ~ 'aNA'", 1));
    CHECK(says("name < 'B'", 1));
    CHECK(says("on = true", 1));
    CHECK(!says("on = false", 1));
    CHECK(says("m.a-b/c < 1", 1));
    CHECK(says("`any thing` < 1", 1));
}

TEST(filter_knows_what_is_not_there)
{
    CHECK(says("none = null", 1));
    CHECK(!says("none != null", 1));
    CHECK(says("n != null", 1));
    CHECK(!says("none < 1", 1));
    CHECK(!says("none > 1", 1));
    CHECK(!says("none = 1", 1));
    CHECK(says("none != 1", 1));
    CHECK(!says("nan < 1", 1));
    CHECK(!says("nan >= 1", 1));
    CHECK(!says("nan = 1", 1));
    CHECK(says("nan != 1", 1));
}

TEST(filter_asks_lists_whether_any_is_such)
{
    CHECK(says("tags = 'red'", 1));
    CHECK(!says("tags = 'green'", 1));
    CHECK(says("tags ~ 'green'", 1));
    CHECK(says("tags != 'blue'", 1));
    CHECK(!says("tags != 'red'", 1));
}

TEST(filter_binds_and_before_or)
{
    CHECK(says("n = 0.25 or n = 1 and n = 2", 1));
    CHECK(!says("(n = 0.25 or n = 1) and n = 2", 2));
    CHECK(says("not n = 1 and on = true", 2));
    CHECK(!says("not (n = 1 or on = true)", 2));
    CHECK(says("NOT NOT n = 0.25", 1));
    CHECK(!says("n = 1 AND on = true", 1)); /* what is decided is not asked on */
}

static void refuses(const char *text, const char *why)
{
    struct error err;
    struct arena *arena = arena_new();
    CHECK(!filter_parse(arena, text, field, &err));
    CHECK_INT(err.code, INVALID);
    if (strcmp(err.text, why) != 0)
        CHECK_STOP("%s: %s", text, err.text);
    arena_free(arena);
}

TEST(filter_names_the_column)
{
    refuses("", "filter, column 1: expected the name of a field");
    refuses("n", "filter, column 2: expected one of = != < <= > >= ~");
    refuses("n = ", "filter, column 5: expected a number, 'text', true, false or null");
    refuses("n = 1 on = true", "filter, column 7: expected and, or, or the end");
    refuses("n = 1 and", "filter, column 10: expected the name of a field");
    refuses("(n = 1", "filter, column 7: expected and, or, or a closing parenthesis");
    refuses("n = 1)", "filter, column 6: expected and, or, or the end");
    refuses("n = 1.2.3", "filter, column 5: this is no number");
    refuses("n = 1e999", "filter, column 5: this is no number");
    refuses("n = 5x", "filter, column 5: this is no number");
    refuses("name = 'Ana", "filter, column 8: this quote has no end");
    refuses("n = 1; n = 2", "filter, column 6: this character has no meaning here");
    refuses("n = 1 and foo = 2", "filter, column 11: no field 'foo'");
    refuses("n = 'a'", "filter, column 5: n is a number, not a text");
    refuses("name = 5", "filter, column 8: name is a text, not a number");
    refuses("n ~ 5", "filter, column 5: ~ takes a text");
    refuses("on < true", "filter, column 6: only = and != go with true, false and null");
}

TEST(filter_is_bounded)
{
    struct str text = {0};
    for (int i = 0; i < 40; i++)
        str_add(&text, "(");
    refuses(str_text(&text), "filter, column 34: nested too deep");
    str_release(&text);
    str_add(&text, "n=1");
    for (int i = 0; i < 150; i++)
        str_add(&text, " or n=1");
    refuses(str_text(&text), "filter, column 705: the expression is too long");
    str_release(&text);
}
