/* train_moved.c - see train_moved.h. */

#include "task/train_moved.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "runtime/worker/link.h"
#include "runtime/worker/moved.h"

#define AGAIN_US 2000000     /* between two times that a task is told */
#define OTHERS_US 5000000    /* in which the others were told, or cannot be reached */
#define AGAIN_SOON_US 200000 /* while one of them has not answered */

struct other {
    struct train_moved *all;
    bool asked; /* no answer yet */
    bool told;
    uint64_t again_us;
};

struct train_moved {
    struct worker_link *const *links;
    int count;
    int home;
    struct moved moved;
    uint64_t begun_us;
    pthread_mutex_t lock; /* guards: the others */
    struct other *others; /* by link */
};

struct train_moved *train_moved_new(struct worker_link *const *links, int count, int home,
                                    const char *address)
{
    const char *placed = getenv("TRAINYARD_PLACED");
    long long epoch = placed ? strtoll(placed, NULL, 10) : 0;
    if (epoch <= 0 || home == 0)
        return NULL;
    struct train_moved *moved = alloc_bytes(sizeof(*moved));
    moved->links = links;
    moved->count = count;
    moved->home = home;
    moved->moved = (struct moved){links[home]->task, epoch, alloc_text(address)};
    moved->begun_us = clock_monotonic_us();
    moved->others = alloc_array((size_t)count, sizeof(*moved->others));
    for (int i = 0; i < count; i++)
        moved->others[i].all = moved;
    pthread_mutex_init(&moved->lock, NULL);
    return moved;
}

void train_moved_free(struct train_moved *moved)
{
    if (!moved)
        return;
    pthread_mutex_destroy(&moved->lock);
    free((char *)moved->moved.address);
    free(moved->others);
    free(moved);
}

static void answered(void *arg, bool ok)
{
    struct other *other = arg;
    pthread_mutex_lock(&other->all->lock);
    other->asked = false;
    other->told = other->told || ok;
    other->again_us = clock_monotonic_us() + (other->told ? AGAIN_US : AGAIN_SOON_US);
    pthread_mutex_unlock(&other->all->lock);
}

/* Whether it is to be told now; then it is being asked. */
static bool is_due(struct train_moved *moved, int link)
{
    uint64_t now_us = clock_monotonic_us();
    bool others_know = now_us - moved->begun_us > OTHERS_US;
    pthread_mutex_lock(&moved->lock);
    struct other *other = &moved->others[link];
    if (!others_know) {
        others_know = true;
        for (int i = 1; i < moved->count; i++)
            others_know = others_know && (i == moved->home || moved->others[i].told);
    }
    bool due = link != moved->home && !other->asked && now_us >= other->again_us &&
               (link > 0 || others_know);
    other->asked = other->asked || due;
    pthread_mutex_unlock(&moved->lock);
    return due;
}

void train_moved_tell(struct train_moved *moved)
{
    for (int i = moved ? moved->count - 1 : -1; i >= 0; i--) {
        if (is_due(moved, i))
            moved_tell(moved->links[i], &moved->moved, answered, &moved->others[i]);
    }
}
