/* usage_test.c - what processes below a shim have used, the living and the dead. */

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "scheduler/agent/usage.h"
#include "tests/unit/test.h"

#define BURNT_SECONDS 0.3
#define HELD_BYTES ((size_t)64 << 20)

static struct network network; /* of the task that is looked at */

static double own_seconds(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* A task that burns time, holds memory, says so by a byte, and waits to be killed. */
static void run_task(int ready)
{
    volatile char *bytes = malloc(HELD_BYTES);
    for (size_t i = 0; bytes && i < HELD_BYTES; i += 4096)
        bytes[i] = 1;
    double until = own_seconds() + BURNT_SECONDS;
    while (own_seconds() < until) {
    }
    if (write(ready, "x", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

/* A shim whose task is two deep, and which waits for it. */
static void run_shim(int ready)
{
    pid_t task = fork();
    if (task == 0) {
        if (fork() == 0)
            run_task(ready);
        while (wait(NULL) > 0) {
        }
        _exit(0);
    }
    waitpid(task, NULL, 0);
    if (write(ready, "y", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

static struct usage_sum used(pid_t shim)
{
    struct usage_sum sum;
    struct usage_table *table = usage_look();
    CHECK(usage_of(table, shim, &network, &sum));
    usage_free(table);
    return sum;
}

/* Whose parent is the child of `shim`. */
static pid_t grandchild(pid_t shim)
{
    char text[400];
    pid_t pid = shim;
    for (int depth = 0; depth < 2; depth++) {
        snprintf(text, sizeof(text), "/proc/%d/task/%d/children", (int)pid, (int)pid);
        FILE *file = fopen(text, "re");
        CHECK(file && fgets(text, sizeof(text), file));
        fclose(file);
        pid = (pid_t)strtol(text, NULL, 10);
    }
    return pid;
}

TEST(usage_counts_the_living_and_the_dead_below_a_shim)
{
    int ready[2];
    char said;
    CHECK(pipe(ready) == 0);
    pid_t shim = fork();
    if (shim == 0)
        run_shim(ready[1]);
    CHECK_INT(read(ready[0], &said, 1), 1);
    struct usage_sum living = used(shim);
    CHECK(living.cpu_seconds > BURNT_SECONDS - 0.05 && living.cpu_seconds < BURNT_SECONDS + 1);
    CHECK(living.memory_bytes >= (int64_t)HELD_BYTES);
    CHECK(living.memory_bytes < (int64_t)HELD_BYTES * 4);

    kill(grandchild(shim), SIGKILL);
    CHECK_INT(read(ready[0], &said, 1), 1);
    struct usage_sum dead = used(shim);
    CHECK(dead.cpu_seconds > living.cpu_seconds - 0.03 &&
          dead.cpu_seconds < living.cpu_seconds + 1);
    CHECK_INT(dead.memory_bytes, 0);

    kill(shim, SIGKILL);
    waitpid(shim, NULL, 0);
    struct usage_sum none;
    struct usage_table *table = usage_look();
    CHECK(!usage_of(table, shim, &network, &none));
    usage_free(table);
}
