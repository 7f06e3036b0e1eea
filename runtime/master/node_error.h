/* node_error.h - errors of nodes in TensorFlow's form. */
#pragma once

#include "base/base.h"

struct error;

/*
 * "node 'x' (MatMul): text" becomes "text\n\t [[{{node x}}]]", where clients look for the node.
 * Other errors stay, and it returns false.
 */
bool node_error(struct error *err);
