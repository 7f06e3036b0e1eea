/*
 * resolve.h - checks a node against the signature of its op and completes it.
 *
 * Three steps, because a GraphDef may name inputs that come later in it: attributes, then types
 * (which follow from the attributes alone), then inputs.
 *
 * `lenient` is how TensorFlow takes graphs from outside: attributes out of bounds and missing
 * inputs become the node's fault, which is reported when the node is to run.
 */
#pragma once

#include "runtime/graph.h"

struct arena;
struct op_arg;

/*
 * Fills node->attrs: those of `def`, defaults, and (strict only) what follows from def->inputs.
 * With `borrow` the attributes of `def` are in `arena` already.
 */
bool resolve_attrs(struct node *node, const struct node_def *def, bool lenient, bool borrow,
                   struct arena *arena, struct error *err) CHECKED;

/* Fills input_types, output_types and outputs_count; returns how many inputs the op takes. */
int resolve_types(struct node *node, struct arena *arena);

/* Checks node->inputs against input_types; `wanted` is what resolve_types() returned. */
bool resolve_inputs(struct node *node, int wanted, bool lenient, struct arena *arena,
                    struct error *err) CHECKED;

/* How many inputs or outputs of `node` the argument of its op stands for. */
int resolve_arg_length(const struct node *node, const struct op_arg *arg);
