/*
 * nearest.h - what somebody may have meant who mistyped a name.
 */
#pragma once

#include "base/base.h"

/*
 * The one of `names` (ended by NULL) that takes the fewest letters to add, drop, change or swap
 * to make of `found`, the case aside; NULL when all are further away than a third of its
 * letters.
 */
const char *nearest_name(const char *found, const char *const *names);
