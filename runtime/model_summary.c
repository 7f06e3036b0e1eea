/* model_summary.c - shapes and parameter counts of layers, from the spec alone. */

#include "base/arena.h"
#include "base/error.h"
#include "runtime/model.h"
#include "runtime/spec.h"

struct summing {
    const struct spec_layer *layer;
    int index;
    struct shape input; /* of one example */
    struct shape output;
    int64_t parameters;
    struct error *err;
};

static bool refuse(const struct summing *s, const char *wanted)
{
    char pointer[64], found[SHAPE_TEXT_BYTES];
    snprintf(pointer, sizeof(pointer), "/model/layers/%d", s->index);
    return error_at(s->err, pointer, INVALID, "%s \"%s\" gets %s for each example, wanted: %s",
                    spec_layer_class(s->layer->kind), s->layer->name,
                    shape_text(&s->input, found, sizeof(found)), wanted);
}

/* Adds kernel and bias; false when they do not fit into a tensor. */
static bool count_weights(struct summing *s, const struct shape *kernel)
{
    int64_t count = shape_count(kernel);
    if (count < 0 || count > LIMIT_TENSOR_BYTES / 4) {
        char pointer[64], text[SHAPE_TEXT_BYTES];
        snprintf(pointer, sizeof(pointer), "/model/layers/%d", s->index);
        return error_at(s->err, pointer, EXHAUSTED,
                        "the kernel of \"%s\" would be %s, allowed: %lld bytes", s->layer->name,
                        shape_text(kernel, text, sizeof(text)), (long long)LIMIT_TENSOR_BYTES);
    }
    s->parameters = count + (s->layer->use_bias ? s->layer->units : 0);
    return true;
}

/* The last dimension becomes `units`, as in Keras; the others stay. */
static bool dense(struct summing *s)
{
    if (s->input.rank < 1)
        return refuse(s, "at least one number");
    s->output = s->input;
    s->output.dims[s->output.rank - 1] = s->layer->units;
    return count_weights(s, &SHAPE(s->input.dims[s->input.rank - 1], s->layer->units));
}

static bool window(struct summing *s)
{
    const struct spec_layer *layer = s->layer;
    if (s->input.rank != 3)
        return refuse(s, "height, width, channels (images, not after Flatten or Dense)");
    s->output = s->input;
    for (int i = 0; i < 2; i++) {
        int64_t size = s->input.dims[i], stride = layer->strides[i];
        if (!layer->same && size < layer->size[i]) {
            char wanted[120];
            snprintf(wanted, sizeof(wanted),
                     "at least %lldx%lld for a window with padding "
                     "\"valid\"",
                     (long long)layer->size[0], (long long)layer->size[1]);
            return refuse(s, wanted);
        }
        int64_t steps = layer->same ? size - 1 : size - layer->size[i];
        s->output.dims[i] = steps / stride + 1;
    }
    return true;
}

static bool conv2d(struct summing *s)
{
    if (!window(s))
        return false;
    s->output.dims[2] = s->layer->units;
    return count_weights(
        s, &SHAPE(s->layer->size[0], s->layer->size[1], s->input.dims[2], s->layer->units));
}

static bool flatten(struct summing *s)
{
    s->output = SHAPE(shape_count(&s->input));
    return true;
}

static bool unchanged(struct summing *s)
{
    s->output = s->input;
    return true;
}

/* The order is that of enum spec_layer_kind. */
static bool (*const layer_rules[])(struct summing *) = {dense,   conv2d,    window,   window,
                                                        flatten, unchanged, unchanged};

/* A number too many per example, or a layer that cannot feed the loss. */
static bool check_output(const struct summing *s, bool last, int64_t classes)
{
    char pointer[64], text[SHAPE_TEXT_BYTES];
    snprintf(pointer, sizeof(pointer), "/model/layers/%d", s->index);
    shape_text(&s->output, text, sizeof(text));
    int64_t count = shape_count(&s->output);
    if (count < 0 || count > LIMIT_TENSOR_BYTES / 4)
        return error_at(s->err, pointer, EXHAUSTED, "\"%s\" would give %s for each example",
                        s->layer->name, text);
    if (last && s->output.rank != 1)
        return error_at(
            s->err, pointer, INVALID,
            "the last layer \"%s\" gives %s for each example, wanted: one number for "
            "each class (put Flatten before the last Dense)",
            s->layer->name, text);
    if (last && classes > s->output.dims[0])
        return error_at(s->err, pointer, INVALID,
                        "the last layer \"%s\" gives %s for each example, wanted: at least the "
                        "%lld classes of the data",
                        s->layer->name, text, (long long)classes);
    return true;
}

bool model_summary(const struct spec *spec, const struct shape *input, int64_t classes,
                   struct arena *arena, struct model_summary *out, struct error *err)
{
    assert(shape_is_full(input));
    int count = spec->layers_count;
    struct model_layer *layers = arena_array(arena, (size_t)count, sizeof(*layers));
    struct summing s = {.output = *input, .err = err};
    int64_t parameters = 0;
    for (int i = 0; i < count; i++) {
        s.layer = &spec->layers[i];
        s.index = i;
        s.input = s.output;
        s.parameters = 0;
        if (!layer_rules[s.layer->kind](&s) || !check_output(&s, i + 1 == count, classes))
            return false;
        layers[i] = (struct model_layer){s.layer->name, spec_layer_class(s.layer->kind),
                                         s.output, s.parameters};
        parameters += s.parameters;
    }
    *out = (struct model_summary){layers, count, parameters};
    return true;
}
