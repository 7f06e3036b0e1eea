/* case_compare.c - whether a tensor is the one recorded, as near as the case allows. */

#include "tests/interop/cases/cases.h"

#include <complex.h>
#include <math.h>

static double complex number_at(const struct tensor *tensor, int64_t i)
{
    if (tensor->dtype == C64)
        return ((const float complex *)tensor->data)[i];
    if (tensor->dtype == C128)
        return ((const double complex *)tensor->data)[i];
    return tensor_number(tensor, i);
}

/* NaN equals NaN, an infinity only itself. */
static bool close_enough(double complex got, double complex want, double relative,
                         double absolute)
{
    bool got_nan = isnan(creal(got)) || isnan(cimag(got));
    bool want_nan = isnan(creal(want)) || isnan(cimag(want));
    if (got_nan || want_nan)
        return got_nan && want_nan;
    if (isinf(cabs(got)) || isinf(cabs(want)))
        return creal(got) == creal(want) && cimag(got) == cimag(want);
    return cabs(got - want) <= absolute + relative * cabs(want);
}

static bool compare_strings(const struct tensor *got, const struct tensor *want,
                            struct error *err)
{
    for (int64_t i = 0; i < want->count; i++) {
        const struct tensor_string *a = tensor_strings(got) + i, *b = tensor_strings(want) + i;
        if (a->size != b->size || (a->size && memcmp(a->data, b->data, a->size) != 0))
            return fail(err, DATA_LOSS, "[%lld] is \"%.*s\", not \"%.*s\"", (long long)i,
                        (int)(a->size < 60 ? a->size : 60), a->data,
                        (int)(b->size < 60 ? b->size : 60), b->data);
    }
    return true;
}

static bool compare_numbers(const struct tensor *got, const struct tensor *want,
                            double relative, double absolute, struct error *err)
{
    int64_t bad = 0, first = -1;
    size_t size = dtype_size(want->dtype);
    bool exact = relative == 0 && absolute == 0;
    for (int64_t i = 0; i < want->count; i++) {
        const char *a = (const char *)got->data + (size_t)i * size;
        const char *b = (const char *)want->data + (size_t)i * size;
        if (memcmp(a, b, size) == 0)
            continue;
        double complex x = number_at(got, i), y = number_at(want, i);
        bool both_nan = isnan(creal(x) + cimag(x)) && isnan(creal(y) + cimag(y));
        if (exact ? both_nan : close_enough(x, y, relative, absolute))
            continue;
        if (first < 0)
            first = i;
        bad++;
    }
    if (bad == 0)
        return true;
    double complex x = number_at(got, first), y = number_at(want, first);
    return fail(err, DATA_LOSS,
                "[%lld] is %.9g%+.9gi, not %.9g%+.9gi: differs by %.3g, allowed %.3g (%lld of "
                "%lld differ)",
                (long long)first, creal(x), cimag(x), creal(y), cimag(y), cabs(x - y),
                absolute + relative * cabs(y), (long long)bad, (long long)want->count);
}

bool case_compare(const struct tensor *got, const struct tensor *want, const Expected *how,
                  struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (got->dtype != want->dtype)
        return fail(err, DATA_LOSS, "is of type %s, not %s", dtype_name(got->dtype),
                    dtype_name(want->dtype));
    if (!shape_equal(&got->shape, &want->shape))
        return fail(err, DATA_LOSS, "has shape %s, not %s",
                    shape_text(&got->shape, a, sizeof(a)),
                    shape_text(&want->shape, b, sizeof(b)));
    if (how->shape_only || want->dtype == RESOURCE)
        return true;
    if (want->dtype == STRING)
        return compare_strings(got, want, err);
    return compare_numbers(got, want, how->relative, how->absolute, err);
}

bool case_same_text(const char *got, const char *want)
{
    if (strncmp(got, "From /job:", 10) == 0 && strchr(got, '\n'))
        got = strchr(got, '\n') + 1; /* a worker's, told by its master */
    const char *named = strstr(got, "): ");
    if (named && strncmp(got, "node '", 6) == 0)
        got = named + 3; /* which node it was stands elsewhere in TensorFlow's */
    const char *attrs = strstr(want, " with these attrs: ["); /* in no order */
    if (attrs)
        return strncmp(got, want, (size_t)(attrs - want)) == 0;
    size_t size = strcspn(got, "\n"), recorded = strlen(want);
    while (size > 0 && got[size - 1] == ' ')
        size--;
    const size_t cut = 200; /* a recording keeps at least so much */
    return strncmp(got, want, recorded) == 0 && (size == recorded || recorded >= cut);
}
