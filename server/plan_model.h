/*
 * plan_model.h - the part of a plan that looks at the model.
 */
#pragma once

#include "base/base.h"

struct error;
struct plan;
struct request;
struct spec;

/*
 * Finds the dataset, and looks whether the layers fit its examples and each other: then
 * plan->model says what it comes to.  Fails with INVALID and a pointer.  What dataset.json does
 * not tell, or the spec changes, the task finds out.
 */
bool plan_model(struct request *req, const struct spec *spec, struct plan *plan,
                struct error *err) CHECKED;
