/*
 * top.h - what trainyard top says of one job.
 */
#pragma once

#include <jansson.h>

#include "base/base.h"

struct client;
struct error;

/* Prints the job and its tasks, over what the terminal shows if so asked. */
bool top_job(struct client *client, const char *name, bool clear, struct error *err) CHECKED;

/* Members of what the server answers: "" and 0 for those that are not there. */
const char *top_text(const json_t *object, const char *name);
double top_number(const json_t *object, const char *name);
