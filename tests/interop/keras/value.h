/* value.h - arrays in the JSON of recorded Keras computations, and comparing them. */
#pragma once

#include <jansson.h>

#include "runtime/tensor.h"

/* {"dtype", "shape", "base64"}.  Fails with INVALID. */
bool value_read(const json_t *json, struct tensor *out, struct error *err) CHECKED;

/*
 * That |got - want| <= absolute + relative |want| everywhere and the shapes agree.  Fails with
 * INVALID, naming the worst place.
 */
bool value_check(const char *what, const struct tensor *got, const struct tensor *want,
                 double relative, double absolute, struct error *err) CHECKED;
