/* node_error.h - errors of nodes in TensorFlow's form. */
#pragma once

struct error;

/*
 * "node 'x' (MatMul): text" becomes "text\n\t [[{{node x}}]]", where clients look for the node.
 * Other errors stay.
 */
void node_error(struct error *err);
