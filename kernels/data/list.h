/*
 * list.h - tf.data: datasets and iterators.
 *
 * Each has one kernel, which is its own reference; a row each, grouped by file.
 */
#pragma once

/* clang-format off */

#define KERNELS_OF_DATA(X)
