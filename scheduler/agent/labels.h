/*
 * labels.h - what an agent says of its node: "zone=a,disk=ssd".
 */
#pragma once

#include "base/base.h"

struct agent_label;
struct error;

#define LABELS_MAX 64

struct labels { /* embedded; all zero is none */
    struct agent_label *list;
    int count;
    char *text; /* the names and values live in it */
};

/*
 * Reads NAME=VALUE, any number of them, separated by commas; NULL and "" are none.  A name has
 * letters, digits, '.', '_' and '-' only; INVALID, with what was found, if not.
 */
bool labels_parse(const char *text, struct labels *labels, struct error *err) CHECKED;

/* One more, of constant texts, unless there is one of that name, or no room. */
void labels_add(struct labels *labels, const char *name, const char *value);

void labels_release(struct labels *labels);
