/*
 * sim.c - plays the scheduler through thousands of worlds full of faults.
 *
 *   sim [--seeds N] [--seed S] [--seconds T] [--trace] [--sqlite]
 *
 * Every seed is a world of its own, played twice: both must do the same.  With --sqlite the
 * second time the server stores all in SQLite, and loads it from there.  A world that breaks a
 * promise prints its seed, and how to play it again.
 */

#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/sim/world.h"

static uint64_t playing;
static bool with_sqlite;

static void how_again(void)
{
    printf("     again: %s --seed %llu --trace%s\n", "build/sim", (unsigned long long)playing,
           with_sqlite ? " --sqlite" : "");
    fflush(stdout);
}

_Noreturn void sim_broken(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("FAIL sim seed %llu: ", (unsigned long long)playing);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    how_again();
    exit(1);
}

/* An assertion of the scheduler does not hold. */
static void on_abort(int signal)
{
    (void)signal;
    printf("FAIL sim seed %llu: an assertion\n", (unsigned long long)playing);
    how_again();
    _exit(1);
}

static uint64_t number_of(const char *text)
{
    char *end;
    uint64_t number = text ? strtoull(text, &end, 10) : 0;
    if (!text || !*text || *end) {
        fprintf(stderr, "sim: '%s' is no number\n", text ? text : "");
        exit(2);
    }
    return number;
}

static int edges_taken(uint32_t edges[JOB_STATES_COUNT][JOB_STATES_COUNT])
{
    int taken = 0;
    for (int from = 0; from < JOB_STATES_COUNT; from++) {
        for (int to = 0; to < JOB_STATES_COUNT; to++)
            taken += edges[from][to] > 0;
    }
    return taken;
}

static struct world_result play(uint64_t seed, bool trace, bool sqlite)
{
    playing = seed;
    struct world_result first = world_run(seed, trace, sqlite && trace);
    if (trace)
        return first;
    struct world_result again = world_run(seed, false, sqlite);
    if (first.hash != again.hash)
        sim_broken("played twice%s, it went two ways", sqlite ? ", once with SQLite" : "");
    return first;
}

int main(int argc, char **argv)
{
    uint64_t seeds = 1000, first = 1, seconds = 0;
    bool trace = false, sqlite = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--trace") == 0) {
            trace = true;
        } else if (strcmp(argv[i], "--sqlite") == 0) {
            sqlite = with_sqlite = true;
        } else if (strcmp(argv[i], "--seeds") == 0) {
            seeds = number_of(argv[++i]);
        } else if (strcmp(argv[i], "--seconds") == 0) {
            seconds = number_of(argv[++i]);
            seeds = UINT64_MAX;
        } else if (strcmp(argv[i], "--seed") == 0) {
            first = number_of(argv[++i]);
            seeds = 1;
        } else {
            fprintf(stderr,
                    "usage: sim [--seeds N] [--seconds T] [--seed S] [--trace] [--sqlite]\n");
            return 2;
        }
    }

    signal(SIGABRT, on_abort);
    uint64_t begin_us = clock_monotonic_us(), worlds = 0, events = 0, jobs = 0, hours = 0;
    uint32_t edges[JOB_STATES_COUNT][JOB_STATES_COUNT] = {{0}};
    for (uint64_t seed = first; worlds < seeds; seed++, worlds++) {
        if (seconds && clock_monotonic_us() - begin_us > seconds * 1000000)
            break;
        struct world_result result = play(seed, trace, sqlite);
        events += (uint64_t)result.events;
        jobs += (uint64_t)result.jobs;
        hours += result.virtual_us / 1000000;
        for (int i = 0; i < JOB_STATES_COUNT * JOB_STATES_COUNT; i++)
            edges[i / JOB_STATES_COUNT][i % JOB_STATES_COUNT] +=
                result.edges[i / JOB_STATES_COUNT][i % JOB_STATES_COUNT];
    }
    double real_s = (double)(clock_monotonic_us() - begin_us) / 1e6;
    printf("ok sim: %llu worlds from seed %llu, %llu jobs, %llu events, %llu virtual hours, "
           "%d of 12 edges, %.1f s, %.0f worlds a minute (each played twice%s)\n",
           (unsigned long long)worlds, (unsigned long long)first, (unsigned long long)jobs,
           (unsigned long long)events, (unsigned long long)hours / 3600, edges_taken(edges),
           real_s, (double)worlds / real_s * 60, sqlite ? ", once with SQLite" : "");
    return 0;
}
