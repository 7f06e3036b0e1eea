/*
 * arithmetic.h - the state of the processor while kernels run.
 */
#pragma once

/*
 * Denormal numbers become zero, as in TensorFlow, here and in the pool of `threads` threads.
 * Returns what arithmetic_end() needs to restore the calling thread.
 */
unsigned arithmetic_start(int threads);
void arithmetic_end(unsigned before);
