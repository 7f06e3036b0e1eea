/*
 * transform.h - what a spec wants done with examples on their way into a batch.
 */
#pragma once

#include "base/base.h"

struct dataset_opening;
struct error;

/*
 * Sets the transforms of a dataset whose columns and feeds stand: images, those features that
 * have (height, width, channels), are augmented as the spec's `augment` says.  Fails with
 * INVALID and a pointer when there are none, or they cannot become what is asked for.
 */
bool transform_augment(struct dataset_opening *opening, struct error *err) CHECKED;
