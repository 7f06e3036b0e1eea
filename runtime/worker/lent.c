/*
 * lent.c - a few places, which do not move: who reads is done in milliseconds.
 *
 * DESIGN: while anything is lent a thread (lent_main) waits for the loan whose time is over
 * first, which is that of a reader that has gone; it ends when nothing is lent.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "runtime/buffer_shared.h"
#include "runtime/held.h"
#include "runtime/rendezvous.h"
#include "runtime/tensor.h"
#include "runtime/worker/fabric.h"
#include "runtime/worker/lent.h"
#include "runtime/worker/near.h"

enum { LATE_MS = 1000 }; /* that are left to a loan when its step is over */

struct held_loan {
    _Atomic int64_t mark; /* the request's number; 0: nothing is lent.  Readers see it */
    int64_t step_id;
    uint64_t until_ns;
    struct tensor tensor;
    struct fabric_memory *memory; /* NULL: it is not lent over the fabric */
    bool is_borrowed;             /* the reader may map it */
    bool is_late;                 /* its step is over */
};

/* What a loan held, to be given back. */
struct given {
    struct tensor tensor;
    struct fabric_memory *memory;
    bool is_borrowed;
};

struct lent {
    uint64_t loan_ns;
    pthread_mutex_t lock;   /* guards: all below */
    pthread_cond_t changed; /* by the monotonic clock: it closes, or the thread has ended */
    bool is_watched;        /* by the thread */
    bool closing;
    int count;
    struct held_loan loans[LENT_MAX];
    struct fabric_memory *marks; /* the loans, to be read over the fabric; NULL: not yet */
    struct fabric_key marks_key;
};

static void give_back(struct given *given)
{
    fabric_take_back(given->memory);
    held_drop(&given->tensor);
    tensor_release(&given->tensor);
}

struct lent *lent_new(int loan_ms)
{
    struct lent *lent = alloc_bytes(sizeof(*lent));
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&lent->lock, NULL);
    pthread_cond_init(&lent->changed, &attr);
    pthread_condattr_destroy(&attr);
    lent->loan_ns = (uint64_t)loan_ms * 1000000;
    return lent;
}

void lent_free(struct lent *lent)
{
    if (!lent)
        return;
    pthread_mutex_lock(&lent->lock);
    lent->closing = true;
    pthread_cond_broadcast(&lent->changed);
    while (lent->is_watched)
        pthread_cond_wait(&lent->changed, &lent->lock);
    pthread_mutex_unlock(&lent->lock);
    for (int i = 0; i < LENT_MAX; i++)
        if (lent->loans[i].mark)
            give_back(&(struct given){lent->loans[i].tensor, lent->loans[i].memory, false});
    fabric_take_back(lent->marks);
    pthread_cond_destroy(&lent->changed);
    pthread_mutex_destroy(&lent->lock);
    free(lent);
}

/* --- taking loans out: their tensors are the caller's to give back, under no lock --- */

static struct given take_locked(struct lent *lent, int index)
{
    lent->loans[index].mark = 0;
    lent->count--;
    const struct held_loan *loan = &lent->loans[index];
    return (struct given){loan->tensor, loan->memory, loan->is_borrowed};
}

static int take_late_locked(struct lent *lent, struct given out[LENT_MAX])
{
    uint64_t now_ns = clock_monotonic_ns();
    int count = 0;
    for (int i = 0; i < LENT_MAX; i++)
        if (lent->loans[i].mark && lent->loans[i].until_ns <= now_ns)
            out[count++] = take_locked(lent, i);
    return count;
}

static void give_back_all(struct given *given, int count)
{
    for (int i = 0; i < count; i++)
        give_back(&given[i]);
}

/* --- the thread --- */

static struct timespec first_end_locked(const struct lent *lent)
{
    uint64_t first_ns = clock_monotonic_ns() + (uint64_t)LATE_MS * 1000000;
    for (int i = 0; i < LENT_MAX; i++)
        if (lent->loans[i].mark && lent->loans[i].until_ns < first_ns)
            first_ns = lent->loans[i].until_ns;
    return (struct timespec){.tv_sec = (time_t)(first_ns / 1000000000),
                             .tv_nsec = (long)(first_ns % 1000000000)};
}

static void *lent_main(void *arg)
{
    struct lent *lent = arg;
    struct given late[LENT_MAX];
    pthread_mutex_lock(&lent->lock);
    while (lent->count && !lent->closing) {
        /* No loan that comes or is late ends before, so none needs to wake this thread. */
        const struct timespec end = first_end_locked(lent);
        pthread_cond_timedwait(&lent->changed, &lent->lock, &end);
        int count = take_late_locked(lent, late);
        pthread_mutex_unlock(&lent->lock);
        give_back_all(late, count);
        pthread_mutex_lock(&lent->lock);
    }
    lent->is_watched = false;
    pthread_cond_broadcast(&lent->changed);
    pthread_mutex_unlock(&lent->lock);
    return NULL;
}

/* Without a thread what is late is found when the next tensor is lent. */
static void watch_locked(struct lent *lent)
{
    pthread_t thread;
    pthread_attr_t attr;
    if (lent->is_watched)
        return;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    lent->is_watched = !pthread_create(&thread, &attr, lent_main, lent);
    pthread_attr_destroy(&attr);
}

/* --- lending --- */

/* -1: no loan has the number; 0 is that of places where nothing is lent. */
static int find_locked(const struct lent *lent, int64_t request_id)
{
    int i = 0;
    while (i < LENT_MAX && lent->loans[i].mark != request_id)
        i++;
    return i < LENT_MAX ? i : -1;
}

/* Whether who has just received `tensor` may map its elements, and is the last to see them. */
static struct near_place place_of(const struct tensor *shared, const struct tensor *tensor,
                                  const struct held_loan *loan)
{
    const struct buffer *buffer = shared->buffer;
    bool has_file = buffer && buffer->file > 0 && shared->data == buffer->data &&
                    shared->dtype != BOOL; /* whose bytes are checked one by one */
    bool last = has_file && rendezvous_is_given(tensor) && !buffer->borrowers &&
                __atomic_load_n(&buffer->references, __ATOMIC_ACQUIRE) == 2;
    return (struct near_place){.address = (uint64_t)(uintptr_t)shared->data,
                               .mark = (uint64_t)(uintptr_t)&loan->mark,
                               .file = has_file ? buffer->file : 0,
                               .writable = last};
}

bool lent_add(struct lent *lent, const struct loan *loan, const struct tensor *tensor,
              struct near_place *place, struct fabric_keys *keys)
{
    struct given late[LENT_MAX], added_given = {0};
    struct tensor *shared = &added_given.tensor;
    struct error err;
    tensor_share(shared, tensor);
    if (!held_add(shared, &err)) {
        tensor_release(shared); /* who sends it instead will say so */
        return false;
    }
    if (keys) {
        added_given.memory = fabric_lend(shared->data, tensor_bytes(shared), &keys->elements);
        if (!added_given.memory) {
            give_back(&added_given);
            return false;
        }
    }
    pthread_mutex_lock(&lent->lock);
    if (keys && !lent->marks)
        lent->marks = fabric_lend(lent->loans, sizeof(lent->loans), &lent->marks_key);
    if (keys)
        keys->mark = lent->marks_key;
    int late_count = take_late_locked(lent, late);
    int free = find_locked(lent, 0);
    bool ok = loan->request_id && free >= 0 && (!keys || lent->marks) &&
              find_locked(lent, loan->request_id) < 0;
    if (ok) {
        struct held_loan *added = &lent->loans[free];
        added->step_id = loan->step_id;
        added->until_ns = clock_monotonic_ns() + lent->loan_ns;
        added->tensor = *shared;
        added->memory = added_given.memory;
        added->mark = loan->request_id;
        *place = place_of(shared, tensor, added);
        if (keys) /* over the fabric nothing is mapped */
            place->file = 0;
        added->is_borrowed = place->file;
        added->is_late = false;
        if (added->is_borrowed)
            buffer_borrow(shared->buffer);
        else if (!keys)
            __atomic_add_fetch(&shared->buffer->copied, 1, __ATOMIC_RELAXED);
        lent->count++;
        watch_locked(lent);
    }
    pthread_mutex_unlock(&lent->lock);
    give_back_all(late, late_count);
    if (!ok)
        give_back(&added_given);
    return ok;
}

bool lent_end(struct lent *lent, int64_t request_id)
{
    struct given given = {0};
    pthread_mutex_lock(&lent->lock);
    int found = request_id ? find_locked(lent, request_id) : -1;
    if (found >= 0)
        given = take_locked(lent, found);
    pthread_mutex_unlock(&lent->lock);
    if (given.is_borrowed)
        buffer_give_back(given.tensor.buffer);
    give_back(&given);
    return found >= 0;
}

static bool is_of_locked(const struct lent *lent, int index, int64_t step_id)
{
    const struct held_loan *loan = &lent->loans[index];
    return loan->mark && loan->step_id == step_id && !loan->is_late;
}

/* Who has mapped it says so in a moment when it is done, and the memory can be used again. */
static bool end_soon_locked(struct held_loan *loan)
{
    uint64_t until_ns = clock_monotonic_ns() + (uint64_t)LATE_MS * 1000000;
    if (!loan->is_borrowed)
        return false;
    loan->is_late = true;
    loan->until_ns = until_ns < loan->until_ns ? until_ns : loan->until_ns;
    return true;
}

void lent_end_step(struct lent *lent, int64_t step_id)
{
    struct given ended[LENT_MAX];
    int count = 0;
    pthread_mutex_lock(&lent->lock);
    for (int i = 0; lent->count && i < LENT_MAX; i++)
        if (is_of_locked(lent, i, step_id) && !end_soon_locked(&lent->loans[i]))
            ended[count++] = take_locked(lent, i);
    pthread_mutex_unlock(&lent->lock);
    give_back_all(ended, count);
}

bool lent_has_step(struct lent *lent, int64_t step_id)
{
    pthread_mutex_lock(&lent->lock);
    bool has = false;
    for (int i = 0; lent->count && i < LENT_MAX && !has; i++)
        has = is_of_locked(lent, i, step_id);
    pthread_mutex_unlock(&lent->lock);
    return has;
}

int lent_count(struct lent *lent)
{
    pthread_mutex_lock(&lent->lock);
    int count = lent->count;
    pthread_mutex_unlock(&lent->lock);
    return count;
}
