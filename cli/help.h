/*
 * help.h - what the verbs say of themselves, for all who print it.
 */
#pragma once

#include "base/base.h"

struct error;
struct str;

extern const char help_servers[]; /* which server a verb speaks to */
extern const char help_exits[];   /* what exit codes mean */

/* Appends what `trainyard VERB --help` prints, asked of this very program. */
bool help_ask(const char *verb, struct str *text, struct error *err) CHECKED;
