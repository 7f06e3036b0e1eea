/* einsum.c - see einsum.h. */

#include "runtime/einsum.h"

#include "base/error.h"

static int label_of(char c)
{
    if (c >= 'a' && c <= 'z')
        return c - 'a';
    return c >= 'A' && c <= 'Z' ? c - 'A' + 26 : -1;
}

/* Reads one term up to `end`. */
static bool parse_term(const char *at, const char *end, struct einsum_term *term,
                       const char *equation, struct error *err)
{
    *term = (struct einsum_term){.dots = -1};
    while (at < end) {
        if (*at == ' ') {
            at++;
        } else if (end - at >= 3 && !strncmp(at, "...", 3)) {
            if (term->dots >= 0)
                return fail(err, INVALID, "Einsum equation \"%s\": \"...\" twice in a term",
                            equation);
            term->dots = term->count;
            at += 3;
        } else {
            int label = label_of(*at++);
            if (label < 0)
                return fail(err, INVALID, "Einsum equation \"%s\": a label must be a letter",
                            equation);
            if (term->count == LIMIT_TENSOR_RANK)
                return fail(err, INVALID, "Einsum equation \"%s\": more than %d labels",
                            equation, LIMIT_TENSOR_RANK);
            term->labels[term->count++] = label;
        }
    }
    return true;
}

static bool has_label(const struct einsum_term *term, int label)
{
    for (int i = 0; i < term->count; i++)
        if (term->labels[i] == label)
            return true;
    return false;
}

static bool check_output(const struct einsum *e, const char *equation, struct error *err)
{
    bool dots = false;
    for (int k = 0; k < e->inputs_count; k++)
        dots = dots || e->inputs[k].dots >= 0;
    if (e->output.dots >= 0 && !dots)
        return fail(err, INVALID,
                    "Einsum equation \"%s\": the result has \"...\", no input has", equation);
    for (int i = 0; i < e->output.count; i++) {
        bool found = false;
        for (int k = 0; k < e->inputs_count; k++)
            found = found || has_label(&e->inputs[k], e->output.labels[i]);
        if (!found)
            return fail(err, INVALID,
                        "Einsum equation \"%s\": a label of the result is in no input",
                        equation);
    }
    return true;
}

bool einsum_parse(const char *equation, int inputs_count, struct einsum *e, struct error *err)
{
    const char *arrow = strstr(equation, "->");
    if (!arrow || strstr(arrow + 2, "->"))
        return fail(err, INVALID, "Expecting exactly one '->' in einsum equation: %s",
                    equation);
    if (inputs_count < 1 || inputs_count > EINSUM_INPUTS)
        return fail(err, INVALID, "Expected 1 or 2 inputs to Einsum but got: %d", inputs_count);
    *e = (struct einsum){.inputs_count = inputs_count};
    const char *at = equation;
    for (int k = 0; k < inputs_count; k++) {
        const char *comma = memchr(at, ',', (size_t)(arrow - at));
        if ((k < inputs_count - 1) != (comma != NULL))
            return fail(err, INVALID, "Expected %d inputs in equation %s", inputs_count,
                        equation);
        const char *end = comma ? comma : arrow;
        if (!parse_term(at, end, &e->inputs[k], equation, err))
            return false;
        at = end + 1;
    }
    return parse_term(arrow + 2, equation + strlen(equation), &e->output, equation, err) &&
           check_output(e, equation, err);
}

int einsum_dots_rank(const struct einsum_term *term, int rank)
{
    if (term->dots < 0)
        return rank == term->count ? 0 : -1;
    return rank >= term->count ? rank - term->count : -1;
}

bool einsum_expand(const struct einsum_term *term, int input, int rank, int dots_rank,
                   int *labels, struct error *err)
{
    int dots = einsum_dots_rank(term, rank);
    if (dots < 0)
        return fail(err, INVALID, "Expected input %d to have rank %s%d but got: %d", input,
                    term->dots >= 0 ? "at least " : "", term->count, rank);
    int at = 0;
    for (int i = 0; i <= term->count; i++) {
        for (int d = 0; i == term->dots && d < dots; d++)
            labels[at++] = 52 + dots_rank - dots + d;
        if (i < term->count)
            labels[at++] = term->labels[i];
    }
    return true;
}
