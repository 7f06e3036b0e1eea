/* mode_checkpoint_diff.c - what two checkpoints do not have in common. */

#include <errno.h>
#include <math.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "task/arguments.h"
#include "task/mode_checkpoint.h"

enum { EXIT_SAME = 0, EXIT_DIFFERENT = 1 };

enum verdict { SAME, VALUES, SHAPES, TYPES, ONLY_A, ONLY_B };

static const char *const verdict_names[] = {"same",  "values", "shapes",
                                            "types", "only_a", "only_b"};

/* One name, in one of them or in both. */
struct row {
    const char *name;
    const struct tensors_item *a, *b;
    enum verdict verdict;
    int64_t count, equal; /* elements, and those with the same bits */
    int64_t beyond;       /* those that differ by more than the tolerance */
    double absolute,
        relative; /* the largest differences of numbers; NaN against one: infinite */
};

struct diff {
    struct tensors *a, *b;
    double tolerance;
    struct row *rows;
    int rows_count, capacity;
};

/* --- comparing --- */

/* Elements that are not the same bits; complex ones as pairs of numbers. */
static void compare_number(struct diff *diff, struct row *row, double a, double b, bool *beyond)
{
    if (a == b || (isnan(a) && isnan(b)))
        return;
    double difference = fabs(a - b), size = fmax(fabs(a), fabs(b));
    if (isnan(difference))
        difference = INFINITY;
    double relative = isinf(difference) ? INFINITY : difference / size;
    row->absolute = fmax(row->absolute, difference);
    row->relative = fmax(row->relative, relative);
    *beyond |= difference > diff->tolerance && relative > diff->tolerance;
}

static void compare_piece(struct diff *diff, struct row *row, const char *a, const char *b,
                          int64_t count)
{
    enum dtype dtype = (enum dtype)row->a->dtype;
    size_t size = dtype_size(dtype);
    bool is_complex = (BIT(dtype) & DTYPES_COMPLEX) != 0;
    enum dtype part = dtype == C64 ? F32 : dtype == C128 ? F64 : dtype;
    int parts = is_complex ? 2 : 1;
    if (!memcmp(a, b, (size_t)count * size)) {
        row->equal += count;
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        if (!memcmp(a + (size_t)i * size, b + (size_t)i * size, size)) {
            row->equal++;
            continue;
        }
        /* Without a tolerance other bits are another value: -0 and 0, two NaNs. */
        bool beyond = diff->tolerance < 0;
        double x[2], y[2];
        mode_checkpoint_numbers(part, a, i * parts, parts, x);
        mode_checkpoint_numbers(part, b, i * parts, parts, y);
        for (int p = 0; p < parts; p++)
            compare_number(diff, row, x[p], y[p], &beyond);
        row->beyond += beyond;
    }
}

static bool compare_values(struct diff *diff, struct row *row, struct error *err)
{
    struct tensors_cursor a, b;
    if (!tensors_begin(&a, diff->a, row->a, err) || !tensors_begin(&b, diff->b, row->b, err))
        return false;
    char *pieces = alloc_bytes(2 * (size_t)TENSORS_PIECE_BYTES);
    int64_t max = TENSORS_PIECE_BYTES / (int64_t)dtype_size(row->a->dtype), count, other;
    bool ok;
    do {
        ok = tensors_next(&a, pieces, max, &count, err) &&
             tensors_next(&b, pieces + TENSORS_PIECE_BYTES, max, &other, err);
        assert(!ok || count == other);
        if (ok)
            compare_piece(diff, row, pieces, pieces + TENSORS_PIECE_BYTES, count);
    } while (ok && count);
    free(pieces);
    return ok;
}

static bool compare_strings(struct diff *diff, struct row *row, struct error *err)
{
    struct tensor a, b;
    if (!tensors_read(diff->a, row->a, &a, err))
        return false;
    bool ok = tensors_read(diff->b, row->b, &b, err);
    if (ok) {
        for (int64_t i = 0; i < a.count; i++) {
            const struct tensor_string *x = &tensor_strings(&a)[i], *y = &tensor_strings(&b)[i];
            row->equal +=
                x->size == y->size && (!x->size || !memcmp(x->data, y->data, x->size));
        }
        row->beyond = a.count - row->equal;
        tensor_release(&b);
    }
    tensor_release(&a);
    return ok;
}

static bool compare(struct diff *diff, struct row *row, struct error *err)
{
    if (!row->a || !row->b) {
        row->verdict = row->a ? ONLY_A : ONLY_B;
        return true;
    }
    if (row->a->dtype != row->b->dtype || !shape_equal(&row->a->shape, &row->b->shape)) {
        row->verdict = row->a->dtype != row->b->dtype ? TYPES : SHAPES;
        return true;
    }
    row->count = shape_count(&row->a->shape);
    if (row->a->dtype == STRING ? !compare_strings(diff, row, err)
                                : !compare_values(diff, row, err))
        return false;
    row->verdict = row->beyond ? VALUES : SAME;
    return true;
}

/* --- which names there are --- */

static void add_row(struct diff *diff, const struct tensors_item *a,
                    const struct tensors_item *b)
{
    diff->rows = alloc_grow(diff->rows, diff->rows_count, &diff->capacity, sizeof(*diff->rows));
    diff->rows[diff->rows_count++] =
        (struct row){.name = a ? a->name : b->name, .a = a, .b = b};
}

/* Both lists are in order of their names.  A name that is asked for is in one of them. */
static bool find_rows(struct diff *diff, const char *const *names, int names_count,
                      struct error *err)
{
    int a_count, b_count;
    const struct tensors_item *a = tensors_items(diff->a, &a_count);
    const struct tensors_item *b = tensors_items(diff->b, &b_count);
    bool *a_chosen = alloc_array((size_t)a_count + 1, sizeof(*a_chosen));
    bool *b_chosen = alloc_array((size_t)b_count + 1, sizeof(*b_chosen));
    bool ok = mode_checkpoint_choose(diff->a, NULL, 0, a_chosen, err) &&
              mode_checkpoint_choose(diff->b, NULL, 0, b_chosen, err);
    if (names_count) {
        memset(a_chosen, 0, (size_t)a_count);
        memset(b_chosen, 0, (size_t)b_count);
    }
    bool *in_a = alloc_array((size_t)a_count + 1, sizeof(*in_a));
    bool *in_b = alloc_array((size_t)b_count + 1, sizeof(*in_b));
    for (int n = 0; ok && n < names_count; n++) {
        struct error not_in_a;
        bool found_a = mode_checkpoint_choose(diff->a, names + n, 1, in_a, &not_in_a);
        bool found_b = mode_checkpoint_choose(diff->b, names + n, 1, in_b, err);
        ok = found_a || found_b;
        for (int i = 0; found_a && i < a_count; i++)
            a_chosen[i] |= in_a[i];
        for (int i = 0; found_b && i < b_count; i++)
            b_chosen[i] |= in_b[i];
    }
    for (int i = 0, k = 0; ok && (i < a_count || k < b_count);) {
        int order = i == a_count ? 1 : k == b_count ? -1 : strcmp(a[i].name, b[k].name);
        const struct tensors_item *x = order <= 0 ? &a[i] : NULL,
                                  *y = order >= 0 ? &b[k] : NULL;
        if ((x && a_chosen[i]) || (y && b_chosen[k]))
            add_row(diff, x, y);
        i += order <= 0;
        k += order >= 0;
    }
    free(a_chosen);
    free(b_chosen);
    free(in_a);
    free(in_b);
    return ok;
}

/* --- telling --- */

static void tell_row(const struct diff *diff, const struct row *row)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    switch (row->verdict) {
    case ONLY_A:
    case ONLY_B:
        printf("  %s: only in %s\n", row->name,
               tensors_path(row->verdict == ONLY_A ? diff->a : diff->b));
        break;
    case TYPES:
        printf("  %s: %s and %s\n", row->name, dtype_name(row->a->dtype),
               dtype_name(row->b->dtype));
        break;
    case SHAPES:
        printf("  %s: %s and %s\n", row->name, shape_text(&row->a->shape, a, sizeof(a)),
               shape_text(&row->b->shape, b, sizeof(b)));
        break;
    case VALUES:
        printf("  %s: %lld of %lld elements differ", row->name, (long long)row->beyond,
               (long long)row->count);
        if (row->a->dtype != STRING)
            printf(", at most by %.6g (%.6g of the larger); %lld have the same bits",
                   row->absolute, row->relative, (long long)row->equal);
        printf("\n");
        break;
    case SAME:
        break;
    }
}

static void add_number(struct str *out, const char *name, double value)
{
    if (isfinite(value))
        str_printf(out, ", \"%s\": %.17g", name, value);
    else
        str_printf(out, ", \"%s\": \"Infinity\"", name);
}

static void tell_json(const struct diff *diff, bool different)
{
    struct str out = {0};
    str_printf(&out, "{\"different\": %s, \"tensors\": [", different ? "true" : "false");
    for (int i = 0; i < diff->rows_count; i++) {
        const struct row *row = &diff->rows[i];
        str_printf(&out, "%s\n  {\"name\": ", i ? "," : "");
        str_add_json(&out, row->name, strlen(row->name));
        str_printf(&out, ", \"verdict\": \"%s\"", verdict_names[row->verdict]);
        if (row->verdict == SAME || row->verdict == VALUES) {
            str_printf(&out, ", \"elements\": %lld, \"same_bits\": %lld, \"differ\": %lld",
                       (long long)row->count, (long long)row->equal, (long long)row->beyond);
            add_number(&out, "max_absolute", row->absolute);
            add_number(&out, "max_relative", row->relative);
        }
        str_add_char(&out, '}');
    }
    str_add(&out, "]}\n");
    fwrite(out.data, 1, out.size, stdout);
    str_release(&out);
}

static bool tell(const struct diff *diff, bool json)
{
    int same = 0;
    for (int i = 0; i < diff->rows_count; i++)
        same += diff->rows[i].verdict == SAME;
    bool different = same < diff->rows_count;
    if (json) {
        tell_json(diff, different);
        return different;
    }
    for (int i = 0; i < diff->rows_count; i++)
        tell_row(diff, &diff->rows[i]);
    printf("%d of %d tensors are the same%s\n", same, diff->rows_count,
           diff->tolerance >= 0 ? " within the tolerance" : "");
    return different;
}

/* --- the whole --- */

static bool run(struct diff *diff, const char *const *words, int count, bool json,
                bool *different, struct error *err)
{
    diff->a = tensors_open(words[0], err);
    diff->b = diff->a ? tensors_open(words[1], err) : NULL;
    bool ok = diff->b && find_rows(diff, words + 2, count - 2, err);
    for (int i = 0; ok && i < diff->rows_count; i++)
        ok = compare(diff, &diff->rows[i], err);
    if (ok)
        *different = tell(diff, json);
    free(diff->rows);
    tensors_close(diff->a);
    tensors_close(diff->b);
    return ok;
}

static bool read_tolerance(const char *text, double *out, struct error *err)
{
    char *end;
    *out = strtod(text, &end);
    return (*text && !*end && isfinite(*out) && *out >= 0) ||
           fail(err, INVALID, "--tolerance is \"%s\", allowed: a number from 0", text);
}

int mode_checkpoint_diff(int argc, char **argv)
{
    struct diff diff = {.tolerance = -1};
    bool json = false, different = false;
    const char *words[MODE_CHECKPOINT_NAMES + 3], *tensor = NULL, *tolerance = NULL;
    int count;
    const struct argument rows[] = {{.name = "--tensor", .text = &tensor},
                                    {.name = "--tolerance", .text = &tolerance},
                                    {.name = "--json", .flag = &json}};
    struct error err;
    bool ok = arguments_read(argc, argv, rows, ARRAY_LEN(rows), words,
                             MODE_CHECKPOINT_NAMES + 2, &count, &err);
    if (ok && count < 2)
        ok = fail(&err, INVALID,
                  "which two checkpoints?  Two prefixes, folders or files "
                  "(--help tells more)");
    ok = ok && (!tolerance || read_tolerance(tolerance, &diff.tolerance, &err));
    if (ok && tensor)
        words[count++] = tensor;
    if (!ok || !run(&diff, words, count, json, &different, &err))
        return mode_checkpoint_fail(&err);
    return different ? EXIT_DIFFERENT : EXIT_SAME;
}
