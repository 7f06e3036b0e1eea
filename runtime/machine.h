/*
 * machine.h - what the machine gives this process.
 */
#pragma once

#include "base/base.h"

/* Bytes of memory: the machine's, or the limit of its group of processes if that is less. */
int64_t machine_memory(void);
