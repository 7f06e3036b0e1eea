/* random.h - Philox 4x32-10 (runtime/philox.h) with TensorFlow's streams. */
#pragma once

#include "kernels/ref/numbers.h"
#include "runtime/philox.h"

/* Moves the counter on. */
void kernel_philox_skip(struct philox *philox, uint64_t blocks);

/* Key and counter that two seeds stand for, as the stateless ops have it. */
struct philox kernel_philox_from_seeds(uint64_t seed0, uint64_t seed1);

/* --- where kernels get their stream from --- */

/*
 * Of a stateful node, by its seeds (both 0: one that nobody can repeat): prepare and release of
 * its kernel.  The stream lives as long as the session.
 */
bool kernel_stream_prepare(const struct node *node, void **state, struct error *err);
void kernel_stream_release(void *state);

/* The stream as it is, and moves it on by `blocks`. */
struct philox kernel_stream_take(void *state, uint64_t blocks);

/* What a run of n numbers moves the counter by for each, whatever it used. */
#define RANDOM_BLOCKS_PER_NUMBER 256

#define RANDOM_TURNS 1024 /* numbers between two looks at whether the run is to end */

/* From a vector of two seeds at `input`. */
bool kernel_random_seeds(const struct kernel_call *call, int input, struct philox *philox,
                         struct error *err) CHECKED;

/* From key, counter and algorithm at `input` and the two behind. */
bool kernel_random_key(const struct kernel_call *call, int input, struct philox *philox,
                       struct error *err) CHECKED;

/*
 * From seeds at input 1, or (version 2 of the ops) key, counter, algorithm; `*next` is the
 * input behind them.
 */
bool kernel_random_stateless(const struct kernel_call *call, struct philox *philox, int *next,
                             struct error *err) CHECKED;

/*
 * From the variable behind input 0, a generator's state, by the algorithm in input `algorithm`;
 * moves the state on by what `numbers` numbers take.
 */
bool kernel_random_of_variable(struct kernel_call *call, int algorithm, int64_t numbers,
                               struct philox *philox, struct error *err) CHECKED;

/* --- words one by one --- */

struct random_words {
    struct philox philox;
    uint64_t next; /* block */
    int left;      /* of words */
    uint32_t words[4];
};

uint32_t kernel_random_word(struct random_words *words);
double kernel_random_double(struct random_words *words); /* in [0, 1), of two words */

/* Below `bound` with equal chances: what would favour small numbers is thrown away. */
uint32_t kernel_random_below32(struct random_words *words, uint32_t bound);
uint64_t kernel_random_below64(struct random_words *words, uint64_t bound);

/* --- doubles two by two, the second of a block first --- */

struct random_pairs {
    struct philox *source; /* moved on by what is used */
    int left;
    double pair[2];
};

double kernel_random_uniform(struct random_pairs *pairs);
double kernel_random_normal(struct random_pairs *pairs);

/* --- fills --- */

enum random_kind { RANDOM_UNIFORM, RANDOM_NORMAL, RANDOM_TRUNCATED };

/* Fills a tensor of a float type with numbers of the stream. */
void kernel_random_fill(const struct philox *philox, enum random_kind kind, struct tensor *out);

/* The same of the elements [from, to) alone; `from` is a multiple of 4, `to` too but at the
 * end. */
void kernel_random_fill_range(const struct philox *philox, enum random_kind kind,
                              struct tensor *out, int64_t from, int64_t to);

/* Fills an integer tensor: in [low, low + range), or any number where range is 0. */
void kernel_random_fill_integers(const struct philox *philox, uint64_t low, uint64_t range,
                                 struct tensor *out);

/* Numbers of one block of the kind uniform or normal; returns how many (4, or 2 of double). */
int kernel_random_block(const struct philox *philox, uint64_t index, enum random_kind kind,
                        enum dtype dtype, double numbers[4]);

/* Scalars at inputs `first` and behind; an empty output asks for no numbers between them. */
bool kernel_random_range(const struct kernel_call *call, int first, int64_t count,
                         uint64_t *low, uint64_t *range, struct error *err) CHECKED;

/*
 * The output of the shape in input `index`, a vector, with the shape of input `inner` behind it
 * (-1: nothing).
 */
struct tensor *kernel_random_output(struct kernel_call *call, int index, int inner,
                                    struct error *err) CHECKED;
