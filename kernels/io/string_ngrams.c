/* string_ngrams.c - runs of neighbouring tokens joined, row by row of a ragged tensor. */

#include "kernels/ref/numbers.h"

#include "base/str.h"

struct ngrams {
    const struct tensor *data;
    const char *separator, *left, *right;
    const int64_t *widths;
    int widths_count;
    int64_t pad_width; /* below 0: as wide as the n-gram allows */
    bool keep_short;
};

static struct ngrams read_attrs(const struct kernel_call *call)
{
    struct ngrams n = {.data = kernel_in(call, 0)};
    n.separator = node_attr_string(call->node, "separator", "");
    n.left = node_attr_string(call->node, "left_pad", "");
    n.right = node_attr_string(call->node, "right_pad", "");
    n.widths = node_attr_ints(call->node, "ngram_widths", &n.widths_count);
    n.pad_width = node_attr_int(call->node, "pad_width", 0);
    n.keep_short = node_attr_bool(call->node, "preserve_short_sequences", false);
    return n;
}

/* Pads on each side of a row for n-grams of that width. */
static int64_t padding(const struct ngrams *n, int64_t width)
{
    return n->pad_width < 0 || n->pad_width > width - 1 ? width - 1 : n->pad_width;
}

/* Of a row of `length` tokens. */
static int64_t count_of(const struct ngrams *n, int64_t length, int64_t width)
{
    int64_t count = length + 2 * padding(n, width) - width + 1;
    return length > 0 || padding(n, width) > 0 ? (count > 0 ? count : 0) : 0;
}

/* Token `i` of the row from `begin` on, pads before and behind. */
static void append(const struct ngrams *n, int64_t begin, int64_t length, int64_t i,
                   struct str *out)
{
    const struct tensor_string *text = tensor_strings(n->data) + begin + i;
    if (i < 0)
        str_add(out, n->left);
    else if (i >= length)
        str_add(out, n->right);
    else
        str_add_bytes(out, text->data, text->size);
}

static void add_ngram(const struct ngrams *n, int64_t begin, int64_t length, int64_t first,
                      int64_t width, struct tensor *out, int64_t *to)
{
    struct str text = {0};
    for (int64_t k = 0; k < width; k++) {
        str_add(&text, k ? n->separator : "");
        append(n, begin, length, first + k, &text);
    }
    tensor_set_string(out, (*to)++, str_text(&text), text.size);
    str_release(&text);
}

static int64_t row_count(const struct ngrams *n, int64_t length, bool *is_short)
{
    int64_t total = 0;
    for (int w = 0; w < n->widths_count; w++)
        total += count_of(n, length, n->widths[w]);
    *is_short = n->keep_short && total == 0 && length > 0;
    return *is_short ? 1 : total;
}

static void fill_row(const struct ngrams *n, int64_t begin, int64_t length, struct tensor *out,
                     int64_t *to)
{
    bool is_short;
    (void)row_count(n, length, &is_short);
    if (is_short) { /* all there is, with what pads there are */
        int64_t pad = n->pad_width < 0 ? 0 : n->pad_width;
        add_ngram(n, begin, length, -pad, length + 2 * pad, out, to);
        return;
    }
    for (int w = 0; w < n->widths_count; w++) {
        int64_t width = n->widths[w], count = count_of(n, length, width);
        for (int64_t k = 0; k < count; k++)
            add_ngram(n, begin, length, k - padding(n, width), width, out, to);
    }
}

static bool check(const struct ngrams *n, const struct tensor *splits, struct error *err)
{
    for (int w = 0; w < n->widths_count; w++)
        if (n->widths[w] <= 0)
            return fail(err, INVALID, "ngram_widths must contain positive values");
    if (n->keep_short && n->widths_count == 0 && n->pad_width < 0)
        return fail(err, INVALID,
                    "Pad width should be >= 0 when preserve_short_sequences is True and "
                    "ngram_widths are not provided, got %lld",
                    (long long)n->pad_width);
    int64_t last = 0;
    for (int64_t i = 0; i < splits->count; i++) {
        int64_t split = tensor_integer(splits, i);
        if (i == 0 && split != 0)
            return fail(err, INVALID, "First split value must be 0, got %lld",
                        (long long)split);
        if (split < last || split > n->data->count)
            return fail(err, INVALID, "Invalid split value %lld, must be in [%lld, %lld]",
                        (long long)split, (long long)last, (long long)n->data->count);
        last = split;
    }
    if (splits->count && last != n->data->count)
        return fail(err, INVALID, "Last split value must be data size. Expected %lld, got %lld",
                    (long long)n->data->count, (long long)last);
    return true;
}

static bool run(struct kernel_call *call, struct error *err)
{
    struct ngrams n = read_attrs(call);
    const struct tensor *splits = kernel_in(call, 1);
    if (!check(&n, splits, err))
        return false;
    struct tensor *out_splits = kernel_output(call, 1, &splits->shape, err);
    if (!out_splits)
        return false;
    if (splits->count == 0 || n.data->count == 0) { /* as many empty strings as tokens */
        for (int64_t i = 0; i < splits->count; i++)
            tensor_set_number(out_splits, i, 0);
        return kernel_output(call, 0, &n.data->shape, err) != NULL;
    }
    int64_t total = 0;
    bool ignored;
    for (int64_t r = 0; r < splits->count; r++) {
        if (r > 0)
            total += row_count(&n, tensor_integer(splits, r) - tensor_integer(splits, r - 1),
                               &ignored);
        tensor_set_number(out_splits, r, (double)total);
    }
    struct tensor *out = kernel_output(call, 0, &SHAPE(total), err);
    if (!out)
        return false;
    int64_t to = 0;
    for (int64_t r = 1; r < splits->count; r++) {
        int64_t begin = tensor_integer(splits, r - 1);
        fill_row(&n, begin, tensor_integer(splits, r) - begin, out, &to);
    }
    return true;
}

const struct kernel kernel_string_n_grams = {.op = "StringNGrams", .device = CPU, .run = run};
