/*
 * augment.h - images changed by chance while they are trained on.
 *
 * The list `augment` in a spec's data section names classes with Keras's names and arguments.
 * They work one after the other on an image of floats.  What is drawn follows from the seed,
 * the place of the class in the list and the example's position in the run alone: not from
 * threads, and a resumed run draws as the unbroken one.  In evaluations nothing is left to
 * chance: the image stays as it is, but for its size.
 */
#pragma once

#include "runtime/philox.h"
#include "runtime/shape.h"
#include "runtime/spec/config.h"

struct augment;

extern const struct config_family augment_family;

/*
 * `count` classes for images (height, width, channels); owned by the caller, `configs` and what
 * they hold are borrowed for its life.  Fails with INVALID and the pointer of the class when an
 * image cannot become what it wants.
 */
struct augment *augment_new(const struct config *const *configs, int count,
                            const struct shape *image, int64_t seed, struct error *err) CHECKED;
void augment_free(struct augment *augment); /* NULL is fine */

/* Of the images that come out. */
const struct shape *augment_shape(const struct augment *augment);

/*
 * Makes `to`, of augment_shape(), from an image.  `position`: of the example in the run, -1 in
 * evaluations.
 */
void augment_run(const struct augment *augment, int64_t position, const float *from, float *to);
