/* iterator.c - tf.data: iterators, optionals, and the handles that datasets share. */

#include "runtime/ops/internal.h"

/* Elements look as the attributes say. */
static bool infer_element(struct infer *infer, struct error *err)
{
    (void)err;
    const struct attr *shapes = node_attr(infer->node, "output_shapes");
    for (int i = 0; shapes && i < shapes->count && i < infer->node->outputs_count; i++)
        infer->outputs[i] = shapes->shapes[i];
    return true;
}

const struct op op_dummy_memory_cache = {
    .name = "DummyMemoryCache",
    .inputs = "",
    .outputs = "handle:resource",
    .attrs = "",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_dummy_seed_generator = {
    .name = "DummySeedGenerator",
    .inputs = "",
    .outputs = "handle:resource",
    .attrs = "",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_dummy_iteration_counter = {
    .name = "DummyIterationCounter",
    .inputs = "",
    .outputs = "handle:resource",
    .attrs = "",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_iterator = {
    .name = "Iterator",
    .inputs = "",
    .outputs = "handle:resource",
    .attrs = "shared_name:string container:string output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_iterator_v2 = {
    .name = "IteratorV2",
    .inputs = "",
    .outputs = "handle:resource",
    .attrs = "shared_name:string container:string output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_one_shot_iterator = {
    .name = "OneShotIterator",
    .inputs = "",
    .outputs = "handle:resource",
    .attrs = "dataset_factory:func output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1 container:string='' shared_name:string=''",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_anonymous_iterator_v3 = {
    .name = "AnonymousIteratorV3",
    .inputs = "",
    .outputs = "handle:resource",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_iterator_to_string_handle = {
    .name = "IteratorToStringHandle",
    .inputs = "resource_handle:resource",
    .outputs = "string_handle:string",
    .attrs = "",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_iterator_from_string_handle = {
    .name = "IteratorFromStringHandle",
    .inputs = "string_handle:string",
    .outputs = "resource_handle:resource",
    .attrs = "output_types:list(type)>=0=[] output_shapes:list(shape)>=0=[]",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_iterator_from_string_handle_v2 = {
    .name = "IteratorFromStringHandleV2",
    .inputs = "string_handle:string",
    .outputs = "resource_handle:resource",
    .attrs = "output_types:list(type)>=0=[] output_shapes:list(shape)>=0=[]",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_anonymous_iterator = {
    .name = "AnonymousIterator",
    .inputs = "",
    .outputs = "handle:resource",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_anonymous_memory_cache = {
    .name = "AnonymousMemoryCache",
    .inputs = "",
    .outputs = "handle:resource deleter:variant",
    .attrs = "",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_anonymous_seed_generator = {
    .name = "AnonymousSeedGenerator",
    .inputs = "seed:int64 seed2:int64 reshuffle:bool",
    .outputs = "handle:resource deleter:variant",
    .attrs = "",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_anonymous_random_seed_generator = {
    .name = "AnonymousRandomSeedGenerator",
    .inputs = "seed:int64 seed2:int64",
    .outputs = "handle:resource deleter:variant",
    .attrs = "",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_anonymous_iterator_v2 = {
    .name = "AnonymousIteratorV2",
    .inputs = "",
    .outputs = "handle:resource deleter:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_optional_from_value = {
    .name = "OptionalFromValue",
    .inputs = "components:list(Toutput_types)",
    .outputs = "optional:variant",
    .attrs = "Toutput_types:list(type)>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_optional_none = {
    .name = "OptionalNone",
    .inputs = "",
    .outputs = "optional:variant",
    .attrs = "",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_optional_has_value = {
    .name = "OptionalHasValue",
    .inputs = "optional:variant",
    .outputs = "has_value:bool",
    .attrs = "",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_iterator_get_next_as_optional = {
    .name = "IteratorGetNextAsOptional",
    .inputs = "iterator:resource",
    .outputs = "optional:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .flags = OP_STATEFUL | OP_EXPENSIVE,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_iterator_get_next = {
    .name = "IteratorGetNext",
    .inputs = "iterator:resource",
    .outputs = "components:list(output_types)",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .flags = OP_STATEFUL | OP_EXPENSIVE,
    .infer = infer_element,
    .no_gradient = true,
};

const struct op op_iterator_get_next_sync = {
    .name = "IteratorGetNextSync",
    .inputs = "iterator:resource",
    .outputs = "components:list(output_types)",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .flags = OP_STATEFUL | OP_EXPENSIVE,
    .infer = infer_element,
    .no_gradient = true,
};

const struct op op_optional_get_value = {
    .name = "OptionalGetValue",
    .inputs = "optional:variant",
    .outputs = "components:list(output_types)",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .infer = infer_element,
    .no_gradient = true,
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
