/*
 * plain.h - what the machine itself can do where the executor's costs end: the limit to hold
 * them against.
 */
#ifndef TESTS_BENCH_EXECUTOR_PLAIN_H
#define TESTS_BENCH_EXECUTOR_PLAIN_H

/** Prints, as a line of JSON, at how many GB/s two threads write 800 MB to a new file in
   memory, and read it into memory that was not used before: no check sums, no names, nothing
   but write() and read(). */
void plain_bench(void);

#endif
