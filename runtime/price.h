/* price.h - what it costs to compute something again, for optimise_recompute.c. */
#pragma once

/* Operations for an element of what the op makes; -1 for ops that are not cheap. */
int price_of(const char *op);
