/*
 * list.h - What reads and writes bytes: strings, files, readers, parsing, images, summaries.
 *
 * Each has one kernel, which is its own reference; a row each, grouped by file.
 */
#pragma once

/* clang-format off */

#define KERNELS_OF_IO(X)
