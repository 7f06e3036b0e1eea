/* optional.h - what an iterator gives that does not fail at its end. */
#pragma once

#include "kernels/data/dataset.h"

#define OPTIONAL_KIND "optional"

struct optional {
    struct resource resource;
    int depth;          /* optionals and datasets within it, and it */
    int width;          /* -1: it has no value */
    struct tensor *row; /* NULL: no value */
};

/* One reference; a row to fill in, or (`width` -1) none. */
struct optional *kernel_optional_new(int width);
