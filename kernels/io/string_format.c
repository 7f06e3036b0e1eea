/* string_format.c - tensors printed into a template. */

#include "kernels/ref/numbers.h"

#include "base/str.h"

/* Nested brackets; of each dimension the first and last `edge` items (below 0: all). */
struct printer {
    const struct tensor *tensor;
    int64_t edge;
    struct str *out;
};

/* Few digits if they read back as the same number, else as many as it takes. */
static void print_float(struct str *out, double value, bool single)
{
    char text[64];
    snprintf(text, sizeof(text), "%.*g", single ? 6 : 15, value);
    double back = single ? (double)strtof(text, NULL) : strtod(text, NULL);
    if (back != value && value == value)
        snprintf(text, sizeof(text), "%.*g", single ? 9 : 17, value);
    str_add(out, text);
}

/* In quotes, as a C literal. */
static void print_text(struct str *out, const struct tensor_string *text)
{
    static const char letters[] = "nrt\"'\\", values[] = "\n\r\t\"'\\";
    str_add_char(out, '"');
    for (size_t i = 0; i < text->size; i++) {
        unsigned char c = (unsigned char)text->data[i];
        const char *special = c ? strchr(values, c) : NULL;
        if (special)
            str_printf(out, "\\%c", letters[special - values]);
        else if (c < 0x20 || c == 0x7f) /* UTF-8 stays */
            str_printf(out, "\\%03o", c);
        else
            str_add_char(out, (char)c);
    }
    str_add_char(out, '"');
}

static void print_element(const struct printer *p, int64_t i)
{
    const struct tensor *t = p->tensor;
    kernel_load_bits *load = kernel_load_bits_for(t->dtype);
    if (t->dtype == STRING) {
        print_text(p->out, &tensor_strings(t)[i]);
    } else if (load && (BIT(t->dtype) & DTYPES_UNSIGNED)) {
        str_printf(p->out, "%llu", (unsigned long long)load(t->data, i));
    } else if (load) {
        str_printf(p->out, "%lld", (long long)load(t->data, i));
    } else {
        print_float(p->out, tensor_number(t, i), t->dtype != F64);
    }
}

/* Rows are parted by a newline for each dimension that ends, and indented to their bracket. */
static void print_gap(const struct printer *p, int axis)
{
    int rank = p->tensor->shape.rank;
    if (axis == rank - 1) {
        str_add_char(p->out, ' ');
        return;
    }
    for (int i = axis; i < rank - 1; i++)
        str_add_char(p->out, '\n');
    for (int i = 0; i <= axis; i++)
        str_add_char(p->out, ' ');
}

static bool is_cut(const struct printer *p, int axis)
{
    return p->edge >= 0 && p->tensor->shape.dims[axis] > 2 * p->edge;
}

/* What has no text: the first `edge` elements in one row, as TensorFlow has it. */
static void print_flat(const struct printer *p)
{
    bool is_row = p->tensor->shape.rank > 0, cut = p->edge >= 0 && p->edge < p->tensor->count;
    int64_t count = cut ? p->edge : p->tensor->count;
    str_add(p->out, is_row ? "[" : "");
    for (int64_t i = 0; i < count; i++)
        str_add(p->out, i ? " ?" : "?");
    str_add(p->out, cut ? "..." : "");
    str_add(p->out, is_row ? "]" : "");
}

/* Goes through the dimensions with a counter for each. */
static void print_all(const struct printer *p)
{
    const struct shape *shape = &p->tensor->shape;
    int64_t at[LIMIT_TENSOR_RANK] = {0};
    int axis = 0; /* whose bracket is open innermost */
    if (p->tensor->dtype == BOOL && p->edge == 0)
        return; /* as TensorFlow does */
    if (BIT(p->tensor->dtype) & (DTYPES_COMPLEX | BIT(RESOURCE) | BIT(VARIANT))) {
        print_flat(p);
        return;
    }
    if (shape->rank == 0 && p->edge == 0)
        str_add(p->out, "...");
    else if (shape->rank == 0)
        print_element(p, 0);
    if (shape->rank == 0)
        return;
    str_add_char(p->out, '[');
    while (axis >= 0) {
        int64_t size = shape->dims[axis];
        if (is_cut(p, axis) && at[axis] == p->edge) {
            print_gap(p, axis);
            str_add(p->out, "...");
            at[axis] = size - p->edge;
        } else if (at[axis] < size) {
            if (at[axis] > 0)
                print_gap(p, axis);
            if (axis == shape->rank - 1) {
                int64_t place = 0;
                for (int d = 0; d < shape->rank; d++)
                    place = place * shape->dims[d] + at[d];
                print_element(p, place);
                at[axis]++;
            } else {
                str_add_char(p->out, '[');
                at[++axis] = 0;
            }
            continue;
        }
        if (at[axis] >= size) {
            str_add_char(p->out, ']');
            if (--axis >= 0)
                at[axis]++;
        } else {
            print_gap(p, axis);
            if (axis < shape->rank - 1) {
                str_add_char(p->out, '[');
                at[++axis] = 0;
            } else {
                int64_t place = 0;
                for (int d = 0; d < shape->rank; d++)
                    place = place * shape->dims[d] + at[d];
                print_element(p, place);
                at[axis]++;
            }
        }
    }
}

static bool run(struct kernel_call *call, struct error *err)
{
    const char *at = node_attr_string(call->node, "template", "%s");
    const char *placeholder = node_attr_string(call->node, "placeholder", "%s");
    int64_t edge = node_attr_int(call->node, "summarize", 3);
    struct str text = {0};
    int used = 0;
    for (const char *found; (found = placeholder[0] ? strstr(at, placeholder) : NULL); used++) {
        str_add_bytes(&text, at, (size_t)(found - at));
        at = found + strlen(placeholder);
        if (used < call->in_count)
            print_all(&(struct printer){kernel_in(call, used),
                                        kernel_in(call, used)->count ? edge : 0, &text});
    }
    str_add(&text, at);
    bool ok = used == call->in_count ||
              fail(err, INVALID,
                   "num placeholders in template and num inputs must match: %d vs. "
                   "%d",
                   used, call->in_count);
    struct tensor *out = ok ? kernel_output(call, 0, &SHAPE_SCALAR, err) : NULL;
    if (out)
        tensor_set_string(out, 0, str_text(&text), text.size);
    str_release(&text);
    return out != NULL;
}

const struct kernel kernel_string_format = {.op = "StringFormat", .device = CPU, .run = run};
