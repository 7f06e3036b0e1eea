/*
 * list.h - every op, one row each, grouped by the file that defines it.
 *
 * To add an op: a constant `const struct op op_NAME` in the file of its family, and a row here.
 */
#pragma once

#define OPS_LIST(X)                                                                            \
    /* framework.c */                                                                          \
    X(no_op)                                                                                   \
    X(const)                                                                                   \
    X(identity)                                                                                \
    X(placeholder)
