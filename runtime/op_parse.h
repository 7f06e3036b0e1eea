/*
 * op_parse.h - from the text of an op's signature to struct op_signature.
 */
#pragma once

#include "runtime/op.h"

struct arena;
struct error;

/* Parses inputs, outputs and attributes of `op` into `arena`; a malformed text aborts, naming
 * it. */
const struct op_signature *op_parse(const struct op *op, struct arena *arena);

/* For an op from a library: fails with INVALID, naming the place, where op_parse() aborts. */
bool op_parse_check(const struct op *op, struct error *err) CHECKED;
