/*
 * digits.h - draws pictures of digits, so that a first training needs no download.
 *
 * A digit is a few strokes, bent, shifted, thickened and smudged at random: easy for a
 * convolutional network (over 98 %), not for a linear model (below 97 %).  The same seed gives
 * the same pictures; picture `index` does not depend on how many there are.
 */
#pragma once

#include "base/base.h"

struct error;

#define DIGITS_SIDE 28
#define DIGITS_PIXELS (DIGITS_SIDE * DIGITS_SIDE)

/* Draws one picture, white on black; returns its label, 0 to 9. */
int digits_draw(uint64_t seed, int64_t index, uint8_t *pixels);

/*
 * Writes the four classic IDX files (train and t10k, images and labels) into `folder`, which
 * exists. The test pictures are other ones than the first of the training pictures.
 */
bool digits_write(const char *folder, int64_t train_count, int64_t test_count, uint64_t seed,
                  struct error *err) CHECKED;
