/*
 * philox.h - Philox 4x32-10 (Salmon et al., 2011), the counter-based random numbers.
 *
 * A block is four words of 32 bits; block number n of a stream is a function of key and counter
 * alone, so that numbers may be made in any order.
 */
#pragma once

#include "base/base.h"

struct philox {
    uint64_t key;
    uint64_t low, high; /* counter */
};

/* The words of the block `index` after the counter. */
void philox_block(const struct philox *philox, uint64_t index, uint32_t words[4]);
