/*
 * verbs.h - the one table of what `trainyard` can do: main.c calls from it, help prints it,
 * completion is made from it.
 */
#pragma once

#include "base/base.h"

struct verb {
    const char *name;
    int (*main)(int argc, char **argv);
    const char *usage; /* after the name; first the word it takes: in capitals what it is, else
                          the choices ("add|make|list") */
    const char *summary;
};

extern const struct verb verbs_all[];
extern const int verbs_all_count;
