/*
 * layer.h - how a layer becomes nodes.
 *
 * A layer is one constant in runtime/model/layers/ and one row in LAYERS below.  It is called
 * once for each pass, training and evaluation: it takes the outputs of other layers and gives
 * its own.  Its weights are made at the first call; later calls find them by their names.
 * What shape it gives follows from the shapes that its ops infer.
 *
 *   static void call(struct layer_call *call)
 *   {
 *       struct edge kernel = layer_weight(call, "kernel", &SHAPE(inputs, units));
 *       layer_give(call, build_matmul(call->m, call->inputs[0], kernel, false, false));
 *   }
 */
#pragma once

#include "runtime/model/build.h"

#define LAYER_OUTPUTS_MAX 8
#define LAYER_CALL_INPUTS_MAX 256

struct layer_call {
    struct build *m;
    const struct layer_class *class;
    const struct config *config;
    const char *name; /* in front of its weights' names */
    const struct edge *inputs;
    int inputs_count;
    const struct edge *masks; /* of the inputs, below; NULL: none has one */
    bool training, trainable;
    bool logits; /* the loss takes what comes before the last softmax or sigmoid */
    struct edge outputs[LAYER_OUTPUTS_MAX];
    struct edge output_masks[LAYER_OUTPUTS_MAX]; /* without node: none */
    int outputs_count;
    bool ends_masks; /* set by a layer after which its inputs have no masks, for others too */
};

struct layer_class {
    struct config_class config;
    int inputs_min, inputs_max; /* both 0: one; inputs_max -1: any number */
    void (*call)(struct layer_call *call);
    bool passes_mask; /* the mask of its first input is that of its outputs */
};

/* Every class of layer; the name of its constant after "layer_". */
#define LAYERS(X)                                                                              \
    X(input)                                                                                   \
    X(dense)                                                                                   \
    X(einsum_dense)                                                                            \
    X(conv1d)                                                                                  \
    X(conv2d)                                                                                  \
    X(conv3d)                                                                                  \
    X(depthwise_conv2d)                                                                        \
    X(separable_conv2d)                                                                        \
    X(conv2d_transpose)                                                                        \
    X(max_pooling1d)                                                                           \
    X(max_pooling2d)                                                                           \
    X(max_pooling3d)                                                                           \
    X(average_pooling1d)                                                                       \
    X(average_pooling2d)                                                                       \
    X(average_pooling3d)                                                                       \
    X(global_max_pooling1d)                                                                    \
    X(global_max_pooling2d)                                                                    \
    X(global_max_pooling3d)                                                                    \
    X(global_average_pooling1d)                                                                \
    X(global_average_pooling2d)                                                                \
    X(global_average_pooling3d)                                                                \
    X(flatten)                                                                                 \
    X(reshape)                                                                                 \
    X(permute)                                                                                 \
    X(repeat_vector)                                                                           \
    X(zero_padding1d)                                                                          \
    X(zero_padding2d)                                                                          \
    X(cropping1d)                                                                              \
    X(cropping2d)                                                                              \
    X(up_sampling1d)                                                                           \
    X(up_sampling2d)                                                                           \
    X(batch_normalization)                                                                     \
    X(layer_normalization)                                                                     \
    X(rms_normalization)                                                                       \
    X(group_normalization)                                                                     \
    X(unit_normalization)                                                                      \
    X(dropout)                                                                                 \
    X(spatial_dropout1d)                                                                       \
    X(spatial_dropout2d)                                                                       \
    X(spatial_dropout3d)                                                                       \
    X(gaussian_noise)                                                                          \
    X(gaussian_dropout)                                                                        \
    X(activation_layer)                                                                        \
    X(relu)                                                                                    \
    X(leaky_relu)                                                                              \
    X(prelu)                                                                                   \
    X(elu)                                                                                     \
    X(softmax)                                                                                 \
    X(embedding)                                                                               \
    X(reversible_embedding)                                                                    \
    X(position_embedding)                                                                      \
    X(masking)                                                                                 \
    X(simple_rnn)                                                                              \
    X(lstm)                                                                                    \
    X(gru)                                                                                     \
    X(bidirectional)                                                                           \
    X(time_distributed)                                                                        \
    X(multi_head_attention)                                                                    \
    X(grouped_query_attention)                                                                 \
    X(attention)                                                                               \
    X(add)                                                                                     \
    X(subtract)                                                                                \
    X(multiply)                                                                                \
    X(average)                                                                                 \
    X(maximum)                                                                                 \
    X(minimum)                                                                                 \
    X(concatenate)                                                                             \
    X(dot)                                                                                     \
    X(rescaling)                                                                               \
    X(normalization)                                                                           \
    X(k_means)

#define LAYER_DECLARE(name) extern const struct layer_class layer_##name;
LAYERS(LAYER_DECLARE)

extern const struct config_family layer_family;

/* The layer that a class of layer_family belongs to. */
const struct layer_class *layer_of(const struct config_class *class);

/* The activation that ends the layer, NULL or "linear" for none. */
const char *layer_activation(const struct config *config);

/*
 * Calls the layer under the scope of the moment: the number of inputs is checked, penalties on
 * its outputs are noted.  Fails at m->pointer.
 */
void layer_run(struct layer_call *call);

/* --- for layers --- */

/*
 * The value of the weight NAME/what.  How it starts, is regularised and held follows from the
 * arguments what_initializer, what_regularizer and what_constraint where the class has them,
 * else it starts with zeros.
 */
struct edge layer_weight(struct layer_call *call, const char *what, const struct shape *shape);

/* The same with `initializer` (a class that needs no arguments) for one without arguments;
 * `trainable` false: not changed by the optimizer.  Returns its index in m->weights. */
int layer_state(struct layer_call *call, const char *what, const struct shape *shape,
                const char *initializer, bool trainable);

/* A weight that starts in parts, along its first dimension. */
struct layer_part {
    const char *initializer;
    struct shape shape;
};
struct edge layer_weight_parts(struct layer_call *call, const char *what,
                               const struct shape *shape, const struct layer_part *parts,
                               int parts_count);

/* One more output. */
void layer_give(struct layer_call *call, struct edge output);

/* The same after the layer's argument "activation"; what the loss does itself is left out. */
void layer_give_activated(struct layer_call *call, struct edge output);

/* The shape of input `index`; its rank and last dimension are known, or the call has failed. */
const struct shape *layer_shape(struct layer_call *call, int index);

/* Refuses inputs: "gets [784] for each example, wanted: ...". */
void layer_refuse(struct layer_call *call, const char *wanted);

/* As layer_shape() of input 0 with examples of that many dimensions; NULL after refusing.
 */
const struct shape *layer_examples(struct layer_call *call, int rank, const char *wanted);

/* Refuses a model that has grown too large; for layers that add nodes in a loop. */
#define LAYER_NODES_MAX 200000
void layer_check_nodes(struct layer_call *call);

/* --- masks: (batch, steps), false where a sequence has no step, as Keras passes them on --- */

/* The mask of an input; without node: it has none. */
struct edge layer_mask(const struct layer_call *call, int index);

/* The mask of an output that was given. */
void layer_give_mask(struct layer_call *call, int output, struct edge mask);

/* The steps that both have; a mask without node has all. */
struct edge layer_mask_and(struct build *m, struct edge a, struct edge b);

/* The mask of one output of several inputs of one shape: the steps that any of them has. */
void layer_merge_masks(struct layer_call *call);

/* --- arguments that many classes have --- */

#define LAYER_CONFIG(name_, initial_, of)                                                      \
    {                                                                                          \
        CONFIG_ARG(name_, CONFIG_OBJECT, initial_), .family = &of                              \
    }
#define LAYER_CHOICE(name_, initial_, of)                                                      \
    {                                                                                          \
        CONFIG_ARG(name_, CONFIG_CHOICE, initial_), .choices = (of)                            \
    }
#define LAYER_WEIGHT(what, initial)                                                            \
    LAYER_CONFIG(what "_initializer", "\"" initial "\"", build_initializer_family),            \
        LAYER_CONFIG(what "_regularizer", "null", build_regularizer_family),                   \
        LAYER_CONFIG(what "_constraint", "null", build_constraint_family)
#define LAYER_ACTIVATION(field, initial)                                                       \
    LAYER_CHOICE(field, "\"" initial "\"", build_activation_names)
#define LAYER_ACTIVITY LAYER_CONFIG("activity_regularizer", "null", build_regularizer_family)
#define LAYER_FLAG(name_, initial_)                                                            \
    {                                                                                          \
        CONFIG_ARG(name_, CONFIG_BOOL, initial_)                                               \
    }
#define LAYER_BIAS LAYER_FLAG("use_bias", "true"), LAYER_WEIGHT("bias", "zeros")
#define LAYER_DATA_FORMAT LAYER_CHOICE("data_format", "\"channels_last\"", layer_data_formats)
#define LAYER_PADDING LAYER_CHOICE("padding", "\"valid\"", layer_paddings)
#define LAYER_SEED                                                                             \
    {                                                                                          \
        CONFIG_ARG("seed", CONFIG_INT, "null")                                                 \
    }

extern const char *const layer_data_formats[];
extern const char *const layer_paddings[];

#define LAYER_UNITS_MAX 10000000
#define LAYER_WINDOW_MAX 10000
