/* loop.h - what an iteration of a loop costs. */
#pragma once

/*
 * Prints one JSON object a loop: microseconds per iteration and per node, of the processor's
 * time.
 */
void loop_bench(void);
