/*
 * path.h - names of files that come from outside and are put below a folder of ours.
 */
#pragma once

#include "base/base.h"

#define PATH_BYTES_MAX 512
#define PATH_DEPTH_MAX 16

/*
 * Whether `path`, joined to a folder, names something below it: relative, of at most
 * PATH_DEPTH_MAX parts, none of them empty, "." or "..", at most PATH_BYTES_MAX bytes of UTF-8
 * without control characters or backslashes.
 */
bool path_is_below(const char *path);
