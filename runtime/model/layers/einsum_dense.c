/* einsum_dense.c - EinsumDense: a Dense layer whose product is written as an equation. */

#include "base/arena.h"
#include "runtime/model/layer.h"

static const struct config_argument arguments[] = {
    {CONFIG_ARG("equation", CONFIG_TEXT, NULL), .wanted = "\"abc,cd->abd\" for one"},
    {CONFIG_ARG("output_shape", CONFIG_INTS, NULL), CONFIG_RANGE(-1, LAYER_UNITS_MAX),
     .wanted = "the dimensions of an output, null for those that stay"},
    LAYER_ACTIVATION("activation", "linear"),
    {CONFIG_ARG("bias_axes", CONFIG_TEXT, "null")},
    LAYER_WEIGHT("kernel", "glorot_uniform"),
    LAYER_WEIGHT("bias", "zeros"),
    LAYER_ACTIVITY,
};

struct equation {
    char input[32], kernel[32], output[32]; /* letters; an ellipsis is left out */
    bool ellipsis;                          /* in front of input and output */
};

/* "...x,xy->...y"; false when it is not of this form. */
static bool parse(const char *text, struct equation *out)
{
    char rest[128];
    snprintf(rest, sizeof(rest), "%s", text);
    char *comma = strchr(rest, ','), *arrow = strstr(rest, "->");
    if (!comma || !arrow || comma > arrow || strlen(text) >= sizeof(rest))
        return false;
    *comma = *arrow = 0;
    const char *parts[3] = {rest, comma + 1, arrow + 2};
    char *into[3] = {out->input, out->kernel, out->output};
    for (int i = 0; i < 3; i++) {
        const char *part = parts[i];
        bool dots = !strncmp(part, "...", 3);
        if (dots && i != 1)
            out->ellipsis = true;
        part += dots ? 3 : 0;
        if (strlen(part) >= 32 ||
            strspn(part, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") !=
                strlen(part))
            return false;
        memcpy(into[i], part, strlen(part) + 1);
    }
    return true;
}

/* The size of a letter: the input's, else what output_shape says; -1: not known. */
static int64_t size_of(const struct equation *e, char letter, const struct shape *input,
                       const int64_t *output, int output_count)
{
    const char *at = strchr(e->input, letter);
    if (at) {
        int64_t place = (at - e->input) + input->rank - (int64_t)strlen(e->input);
        if (place >= 0 && place < input->rank && input->dims[place] >= 0)
            return input->dims[place];
    }
    at = strchr(e->output, letter);
    int64_t place = at ? (at - e->output) + output_count - (int64_t)strlen(e->output) : -1;
    return place >= 0 && place < output_count ? output[place] : -1;
}

/* In a shape that broadcasts against the output: 1 for letters that are not among the axes. */
static struct edge bias(struct layer_call *call, const struct equation *e,
                        const struct shape *input, const int64_t *output, int output_count)
{
    const char *axes = config_text(call->config, "bias_axes");
    struct shape shape = {0};
    bool begun = false;
    for (const char *c = e->output; *c && shape.rank < LIMIT_TENSOR_RANK; c++) {
        bool named = strchr(axes, *c);
        begun |= named;
        if (begun)
            shape.dims[shape.rank++] = named ? size_of(e, *c, input, output, output_count) : 1;
    }
    if (!shape_is_full(&shape) || !shape.rank) {
        layer_refuse(call, "the dimensions that \"bias_axes\" names");
        return (struct edge){0};
    }
    return layer_weight(call, "bias", &shape);
}

static void einsum_dense(struct layer_call *call)
{
    struct build *m = call->m;
    struct equation e = {0};
    int count;
    const char *text = config_text(call->config, "equation");
    const int64_t *given = config_ints(call->config, "output_shape", &count);
    const struct shape input = *layer_shape(call, 0);
    int64_t output[LIMIT_TENSOR_RANK + 1] = {input.dims[0]};
    struct shape kernel = {0};
    if (!build_ok(m))
        return;
    if (!parse(text, &e) || count >= LIMIT_TENSOR_RANK) {
        build_refuse(m, INVALID, "equation is \"%s\", allowed: \"ab,bc->ac\" for one", text);
        return;
    }
    memcpy(output + 1, given, (size_t)count * sizeof(*output));
    for (const char *c = e.kernel; *c && kernel.rank < LIMIT_TENSOR_RANK; c++)
        kernel.dims[kernel.rank++] = size_of(&e, *c, &input, output, count + 1);
    if (!shape_is_full(&kernel)) {
        layer_refuse(call, "sizes for every letter of the equation's kernel");
        return;
    }
    struct edge w = layer_weight(call, "kernel", &kernel);
    struct edge x = builder_add(&m->b, "Einsum", "einsum", INPUTS(call->inputs[0], w),
                                ATTRS(attr_int("N", 2), attr_string("equation", text)));
    if (!config_is_null(call->config, "bias_axes"))
        x = build_binary(m, "AddV2", x, bias(call, &e, &input, output, count + 1));
    layer_give_activated(call, x);
}

const struct layer_class layer_einsum_dense = {
    .config = {.name = "EinsumDense", CONFIG_ARGUMENTS(arguments)}, .call = einsum_dense};
