/*
 * tables.h - makes tables to try models on, so that a first training needs no download.
 *
 * Each writes train.csv and test.csv into `folder`, which exists.  The same seed gives the same
 * rows; row `index` does not depend on how many there are.
 */
#pragma once

#include "base/base.h"

struct error;

/*
 * Ten numbers x0 to x9 and y, which is a weighted sum of them, 1.5, and noise of standard
 * deviation 0.1: a linear model ends at a mean squared error of 0.01.
 */
bool tables_linear(const char *folder, int64_t train_count, int64_t test_count, uint64_t seed,
                   struct error *err) CHECKED;

/*
 * People with age, hours of work, schooling, a job, a region, both of those as one word, and
 * whether they earn much ("label").  That depends on pairs of job and region beside all else,
 * so a model that adds up single columns falls short; the best possible is right in 87 %.
 */
bool tables_census(const char *folder, int64_t train_count, int64_t test_count, uint64_t seed,
                   struct error *err) CHECKED;

/*
 * Points (x1, x2) around five centres, and the number of the centre: standard deviation 0.3 in
 * each direction, so the best sum of squares is 0.18 for each point, 0.09 for each number.
 */
bool tables_blobs(const char *folder, int64_t train_count, int64_t test_count, uint64_t seed,
                  struct error *err) CHECKED;
