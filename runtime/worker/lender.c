/* lender.c - who is told, while there is somebody. */

#include "runtime/worker/lender.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"

struct lender {
    int references; /* __atomic */
    void (*give_back)(void *arg, int64_t request_id);
    void *arg;
    pthread_mutex_t lock;  /* guards: all below */
    pthread_cond_t nobody; /* is being told */
    bool closed;
    int telling;
};

struct lender *lender_new(void (*give_back)(void *arg, int64_t request_id), void *arg)
{
    struct lender *lender = alloc_bytes(sizeof(*lender));
    *lender = (struct lender){.references = 1, .give_back = give_back, .arg = arg};
    pthread_mutex_init(&lender->lock, NULL);
    pthread_cond_init(&lender->nobody, NULL);
    return lender;
}

void lender_ref(struct lender *lender)
{
    __atomic_add_fetch(&lender->references, 1, __ATOMIC_RELAXED);
}

void lender_unref(struct lender *lender)
{
    if (!lender || __atomic_sub_fetch(&lender->references, 1, __ATOMIC_ACQ_REL))
        return;
    pthread_cond_destroy(&lender->nobody);
    pthread_mutex_destroy(&lender->lock);
    free(lender);
}

void lender_close(struct lender *lender)
{
    pthread_mutex_lock(&lender->lock);
    lender->closed = true;
    while (lender->telling)
        pthread_cond_wait(&lender->nobody, &lender->lock);
    pthread_mutex_unlock(&lender->lock);
}

void lender_tell(struct lender *lender, int64_t request_id)
{
    pthread_mutex_lock(&lender->lock);
    bool closed = lender->closed;
    lender->telling += !closed;
    pthread_mutex_unlock(&lender->lock);
    if (closed)
        return;
    lender->give_back(lender->arg, request_id);
    pthread_mutex_lock(&lender->lock);
    if (!--lender->telling)
        pthread_cond_broadcast(&lender->nobody);
    pthread_mutex_unlock(&lender->lock);
}
