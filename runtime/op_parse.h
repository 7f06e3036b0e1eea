/*
 * op_parse.h - from the text of an op's signature to struct op_signature.
 */
#pragma once

#include "runtime/op.h"

struct arena;

/* Parses inputs, outputs and attributes of `op` into `arena`; a malformed text aborts, naming
 * it. */
const struct op_signature *op_parse(const struct op *op, struct arena *arena);
