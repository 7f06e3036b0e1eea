/* activation.c - Activation. */

#include "runtime/model/layer.h"

static const struct config_argument activation_arguments[] = {
    {CONFIG_ARG("activation", CONFIG_CHOICE, NULL), .choices = build_activation_names,
     .wanted = "\"relu\" for one"}};

static void activation(struct layer_call *call)
{
    layer_give_activated(call, call->inputs[0]);
}

const struct layer_class layer_activation_layer = {
    .config = {.name = "Activation", CONFIG_ARGUMENTS(activation_arguments)},
    .call = activation};
