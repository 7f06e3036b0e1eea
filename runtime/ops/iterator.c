/* iterator.c - tf.data: iterators, optionals, and the handles that datasets share. */

#include <stdlib.h>

#include "base/alloc.h"
#include "runtime/gradient.h"
#include "runtime/ops/dataset.h"

const struct op op_dummy_memory_cache =
    OP_SCALAR("DummyMemoryCache", "", "handle:resource", "", OP_STATEFUL);

const struct op op_dummy_seed_generator =
    OP_SCALAR("DummySeedGenerator", "", "handle:resource", "", OP_STATEFUL);

const struct op op_dummy_iteration_counter =
    OP_SCALAR("DummyIterationCounter", "", "handle:resource", "", OP_STATEFUL);

const struct op op_iterator =
    OP_SCALAR("Iterator", "", "handle:resource",
              "shared_name:string container:string " OP_ELEMENTS, OP_STATEFUL);

const struct op op_iterator_v2 =
    OP_SCALAR("IteratorV2", "", "handle:resource",
              "shared_name:string container:string " OP_ELEMENTS, OP_STATEFUL);

const struct op op_one_shot_iterator =
    OP_SCALAR("OneShotIterator", "", "handle:resource",
              "dataset_factory:func " OP_ELEMENTS " container:string='' shared_name:string=''",
              OP_STATEFUL);

const struct op op_anonymous_iterator_v3 =
    OP_SCALAR("AnonymousIteratorV3", "", "handle:resource", OP_ELEMENTS, OP_STATEFUL);

const struct op op_iterator_to_string_handle =
    OP_SCALAR("IteratorToStringHandle", "resource_handle:resource", "string_handle:string", "",
              OP_STATEFUL);

const struct op op_iterator_from_string_handle =
    OP_SCALAR("IteratorFromStringHandle", "string_handle:string", "resource_handle:resource",
              "output_types:list(type)>=0=[] output_shapes:list(shape)>=0=[]", OP_STATEFUL);

const struct op op_iterator_from_string_handle_v2 =
    OP_SCALAR("IteratorFromStringHandleV2", "string_handle:string", "resource_handle:resource",
              "output_types:list(type)>=0=[] output_shapes:list(shape)>=0=[]", OP_STATEFUL);

const struct op op_anonymous_iterator =
    OP_SCALAR("AnonymousIterator", "", "handle:resource", OP_ELEMENTS, OP_STATEFUL);

const struct op op_anonymous_memory_cache =
    OP_SCALAR("AnonymousMemoryCache", "", "handle:resource deleter:variant", "", OP_STATEFUL);

const struct op op_anonymous_seed_generator =
    OP_SCALAR("AnonymousSeedGenerator", "seed:int64 seed2:int64 reshuffle:bool",
              "handle:resource deleter:variant", "", OP_STATEFUL);

const struct op op_anonymous_random_seed_generator =
    OP_SCALAR("AnonymousRandomSeedGenerator", "seed:int64 seed2:int64",
              "handle:resource deleter:variant", "", OP_STATEFUL);

const struct op op_anonymous_iterator_v2 = OP_SCALAR(
    "AnonymousIteratorV2", "", "handle:resource deleter:variant", OP_ELEMENTS, OP_STATEFUL);

/* Gradients of optionals are optionals: what a branch that was taken hands to its gradient. */
static bool from_value_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    const struct node *node = g->node;
    struct shape *unknown = alloc_array((size_t)node->inputs_count, sizeof(*unknown));
    for (int i = 0; i < node->inputs_count; i++)
        unknown[i] = SHAPE_UNKNOWN;
    const struct attr shapes = {.name = "output_shapes",
                                .kind = ATTR_SHAPE,
                                .is_list = true,
                                .count = node->inputs_count,
                                .shapes = unknown};
    struct edge row = builder_add(
        &g->build, "OptionalGetValue", "value", INPUTS(g->of_outputs[0]),
        ATTRS(attr_type_list("output_types", node->input_types, node->inputs_count), shapes));
    for (int i = 0; i < node->inputs_count; i++)
        g->of_inputs[i] = row.from ? builder_output(row, i) : row;
    free(unknown);
    return true;
}

static bool get_value_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    const struct node *node = g->node;
    struct edge *row = alloc_array((size_t)node->outputs_count, sizeof(*row));
    for (int i = 0; i < node->outputs_count; i++)
        row[i] = g->of_outputs[i].from ? g->of_outputs[i]
                                       : builder_add(&g->build, "ZerosLike", "zeros",
                                                     INPUTS(gradient_y(g, i)), NO_ATTRS);
    if (builder_ok(&g->build))
        g->of_inputs[0] = builder_add(
            &g->build, "OptionalFromValue", "optional", row, node->outputs_count,
            ATTRS(attr_type_list("Toutput_types", node->output_types, node->outputs_count)));
    free(row);
    return true;
}

const struct op op_optional_from_value = {
    .name = "OptionalFromValue",
    .inputs = "components:list(Toutput_types)",
    .outputs = "optional:variant",
    .attrs = "Toutput_types:list(type)>=1",
    .infer = op_infer_scalar,
    .gradient = from_value_gradient,
};

const struct op op_optional_none = OP_SCALAR("OptionalNone", "", "optional:variant", "", 0);

const struct op op_optional_has_value =
    OP_SCALAR("OptionalHasValue", "optional:variant", "has_value:bool", "", 0);

const struct op op_iterator_get_next_as_optional =
    OP_SCALAR("IteratorGetNextAsOptional", "iterator:resource", "optional:variant", OP_ELEMENTS,
              OP_STATEFUL | OP_EXPENSIVE);

const struct op op_iterator_get_next = {
    .name = "IteratorGetNext",
    .inputs = "iterator:resource",
    .outputs = "components:list(output_types)",
    .attrs = OP_ELEMENTS,
    .flags = OP_STATEFUL | OP_EXPENSIVE,
    .infer = op_infer_element,
    .no_gradient = true,
};

const struct op op_iterator_get_next_sync = {
    .name = "IteratorGetNextSync",
    .inputs = "iterator:resource",
    .outputs = "components:list(output_types)",
    .attrs = OP_ELEMENTS,
    .flags = OP_STATEFUL | OP_EXPENSIVE,
    .infer = op_infer_element,
    .no_gradient = true,
};

const struct op op_optional_get_value = {
    .name = "OptionalGetValue",
    .inputs = "optional:variant",
    .outputs = "components:list(output_types)",
    .attrs = OP_ELEMENTS,
    .infer = op_infer_element,
    .gradient = get_value_gradient,
};

const struct op op_make_iterator = {
    .name = "MakeIterator",
    .inputs = "dataset:variant iterator:resource",
    .outputs = "",
    .attrs = "",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

const struct op op_delete_iterator = {
    .name = "DeleteIterator",
    .inputs = "handle:resource deleter:variant",
    .outputs = "",
    .attrs = "",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

const struct op op_delete_memory_cache = {
    .name = "DeleteMemoryCache",
    .inputs = "handle:resource deleter:variant",
    .outputs = "",
    .attrs = "",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

const struct op op_delete_seed_generator = {
    .name = "DeleteSeedGenerator",
    .inputs = "handle:resource deleter:variant",
    .outputs = "",
    .attrs = "",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

const struct op op_delete_random_seed_generator = {
    .name = "DeleteRandomSeedGenerator",
    .inputs = "handle:resource deleter:variant",
    .outputs = "",
    .attrs = "",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};
