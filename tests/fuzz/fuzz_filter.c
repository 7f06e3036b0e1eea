/* fuzz_filter.c - expressions that choose jobs, and what lists are gone on with. */

#include "server/filter.h"
#include "server/job_cursor.h"
#include "tests/fuzz/fuzz.h"

/* Fields of every kind, by the first letter. */
static bool field(const char *name, enum filter_kind *kind, struct error *err)
{
    static const enum filter_kind kinds[] = {FILTER_NUMBER, FILTER_TEXT, FILTER_TRUTH,
                                             FILTER_ANY};
    if (name[0] < 'a' || name[0] > 'p')
        return fail(err, INVALID, "no field");
    *kind = kinds[(name[0] - 'a') % 4];
    return true;
}

static bool lookup(void *row, const char *name, struct filter_value *value, struct error *err)
{
    static const char *const list[] = {"a", "b"};
    (void)row;
    (void)err;
    *value = (struct filter_value){.kind = FILTER_NULL};
    if (name[0] % 4 == 1)
        *value = (struct filter_value){.kind = FILTER_NUMBER, .number = (double)strlen(name)};
    else if (name[0] % 4 == 2)
        *value = (struct filter_value){.kind = FILTER_TEXT, .text = name};
    else if (name[0] % 4 == 3)
        *value = (struct filter_value){
            .kind = FILTER_TEXT, .text = name, .list = list, .list_count = 2};
    return true;
}

static void check_cursor(struct arena *arena, const char *text)
{
    struct error err = {0};
    struct db_ranked ranked;
    if (job_cursor_read_text(text, &ranked, &err))
        FUZZ_CHECK(ranked.job > 0 && *job_cursor_text(arena, &ranked));
    if (job_cursor_read(text, &ranked, &err))
        FUZZ_CHECK(ranked.value == ranked.value &&
                   strlen(job_cursor_text(arena, &ranked)) >= 18);
    else
        FUZZ_CHECK(err.code == INVALID && err.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = {0};
    struct arena *arena = arena_new();
    char *text = strndup((const char *)data, size);
    FUZZ_CHECK(text);
    const struct filter *filter = filter_parse(arena, text, field, &err);
    bool once, twice;
    if (filter) {
        FUZZ_CHECK(filter_match(filter, lookup, NULL, &once, &err));
        FUZZ_CHECK(filter_match(filter, lookup, NULL, &twice, &err) && once == twice);
    } else {
        FUZZ_CHECK(err.code == INVALID && !strncmp(err.text, "filter, column ", 15));
    }
    check_cursor(arena, text);
    free(text);
    arena_free(arena);
    return 0;
}
