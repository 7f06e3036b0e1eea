/*
 * body.h - the JSON object that a request brings.
 */
#pragma once

#include <jansson.h>

#include "base/base.h"

struct error;
struct request;
struct spec_object;

/*
 * The body as an object, owned by the caller, with `object` ready for spec_read_*().  No body
 * is an empty object.  NULL with INVALID when it is anything else, or a name stands in it
 * twice.
 */
json_t *body_object(struct request *req, struct spec_object *object, struct error *err) CHECKED;
