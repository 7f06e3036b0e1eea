/*
 * list.h - What keeps state: control flow, queues, tables, tensor arrays, lists, accumulators.
 *
 * Each has one kernel, which is its own reference; a row each, grouped by file.
 */
#pragma once

/* clang-format off */

#define KERNELS_OF_STATE(X)
