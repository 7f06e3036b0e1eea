/* workers_test.c - work is done, each once, also what is given when the end is near. */

#include <pthread.h>
#include <stdatomic.h>

#include "server/workers.h"
#include "tests/unit/test.h"

enum { ITEMS = 2000, GIVERS = 4 };

struct item {
    struct work work;
    atomic_int done;
};

static struct item items[GIVERS][ITEMS];
static struct workers *all;

static void do_item(struct work *work)
{
    atomic_fetch_add(&((struct item *)work)->done, 1);
}

static void *give_main(void *argument)
{
    struct item *mine = argument;
    for (int i = 0; i < ITEMS; i++)
        if (!workers_give(all, &mine[i].work))
            do_item(&mine[i].work); /* as its owner does */
    return NULL;
}

TEST(everything_is_done_once)
{
    pthread_t givers[GIVERS];
    all = workers_new(3, do_item);
    CHECK(all != NULL);
    for (int g = 0; g < GIVERS; g++)
        CHECK_INT(pthread_create(&givers[g], NULL, give_main, items[g]), 0);
    while (!atomic_load(&items[0][ITEMS / 2].done))
        sched_yield();
    workers_stop(all);
    for (int g = 0; g < GIVERS; g++)
        pthread_join(givers[g], NULL);
    for (int g = 0; g < GIVERS; g++)
        for (int i = 0; i < ITEMS; i++)
            CHECK_INT(atomic_load(&items[g][i].done), 1);
    struct item late = {0};
    CHECK(!workers_give(all, &late.work));
    workers_free(all);
}
