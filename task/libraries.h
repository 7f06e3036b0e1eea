/* libraries.h - shared libraries with ops and kernels of their own, for this process. */
#pragma once

#include "base/base.h"

struct error;

/* Loads one and lets it register what it has.  Fails as ty_load_library() does. */
bool libraries_load(const char *path, struct error *err) CHECKED;
