/*
 * random.h - Philox 4x32-10, the counter-based generator, with TensorFlow's streams.
 *
 * A block is four words of 32 bits; block number n of a stream is a function of key and counter
 * alone, so that numbers may be made in any order.
 */
#pragma once

#include "kernels/ref/numbers.h"

struct philox {
    uint64_t key;
    uint64_t low, high; /* counter */
};

/* The words of the block `index` after the counter. */
void kernel_philox_block(const struct philox *philox, uint64_t index, uint32_t words[4]);

/* Key and counter that two seeds stand for, as the stateless ops have it. */
struct philox kernel_philox_from_seeds(uint64_t seed0, uint64_t seed1);

enum random_kind { RANDOM_UNIFORM, RANDOM_NORMAL, RANDOM_TRUNCATED };

/* Fills a tensor of a float type with numbers of the stream. */
void kernel_random_fill(const struct philox *philox, enum random_kind kind, struct tensor *out);

/* Fills an integer tensor: in [low, low + range), or any number where range is 0. */
void kernel_random_fill_integers(const struct philox *philox, uint64_t low, uint64_t range,
                                 struct tensor *out);
