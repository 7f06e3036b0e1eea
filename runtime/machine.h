/*
 * machine.h - what the machine gives this process.
 */
#pragma once

#include "base/base.h"

/* Bytes of memory: the machine's, or the limit of its group of processes if that is less. */
int64_t machine_memory(void);

/* Processors that this process may run on, at least 1. */
int machine_processors(void);

/* Whether it has instructions that multiply bfloat16; without them that is no faster. */
bool machine_multiplies_bf16(void);
