/* input.c - InputLayer: what the model takes from the data. */

#include "runtime/model/layer.h"

static const char *const dtypes[] = {"float32", "int32", "int64", "bool", NULL};

static const struct config_argument arguments[] = {
    {CONFIG_ARG("shape", CONFIG_INTS, "null"), CONFIG_RANGE(-1, 1e9)},
    {CONFIG_ARG("dtype", CONFIG_CHOICE, "null"), .choices = dtypes},
};

/* The data has given it already: what it says of itself is checked against that. */
static void call(struct layer_call *call)
{
    int count;
    const int64_t *dims = config_ints(call->config, "shape", &count);
    const struct shape *shape = build_shape(call->m, call->inputs[0]);
    for (int i = 0; dims && i < count; i++) {
        if (shape->rank != count + 1 || (dims[i] >= 0 && dims[i] != shape->dims[i + 1])) {
            char text[SHAPE_TEXT_BYTES];
            struct shape wanted = {.rank = count < LIMIT_TENSOR_RANK ? count : 0};
            memcpy(wanted.dims, dims, (size_t)wanted.rank * sizeof(*dims));
            layer_refuse(call, shape_text(&wanted, text, sizeof(text)));
            return;
        }
    }
    layer_give(call, call->inputs[0]);
}

const struct layer_class layer_input = {
    .config = {.name = "InputLayer",
               .aliases = (const char *const[]){"Input", NULL},
               CONFIG_ARGUMENTS(arguments)},
    .call = call};
