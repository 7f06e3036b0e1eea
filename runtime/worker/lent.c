/* lent.c - a short list: who reads is done in milliseconds. */

#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "runtime/tensor.h"
#include "runtime/worker/lent.h"

struct lent {
    pthread_mutex_t lock; /* guards: all below */
    int count;
    struct loan {
        int64_t request_id;
        uint64_t until_ns;
        struct tensor tensor;
    } loans[LENT_MAX];
};

struct lent *lent_new(void)
{
    struct lent *lent = alloc_bytes(sizeof(*lent));
    pthread_mutex_init(&lent->lock, NULL);
    return lent;
}

void lent_free(struct lent *lent)
{
    if (!lent)
        return;
    for (int i = 0; i < lent->count; i++)
        tensor_release(&lent->loans[i].tensor);
    pthread_mutex_destroy(&lent->lock);
    free(lent);
}

/* Takes the loan out; its tensor is the caller's to release. */
static struct tensor take_locked(struct lent *lent, int index)
{
    struct tensor tensor = lent->loans[index].tensor;
    lent->loans[index] = lent->loans[--lent->count];
    return tensor;
}

/* Whose readers are gone, it seems. */
static int take_late_locked(struct lent *lent, struct tensor late[LENT_MAX])
{
    uint64_t now = clock_monotonic_ns();
    int count = 0;
    for (int i = lent->count - 1; i >= 0; i--)
        if (lent->loans[i].until_ns <= now)
            late[count++] = take_locked(lent, i);
    return count;
}

bool lent_add(struct lent *lent, int64_t request_id, const struct tensor *tensor,
              uint64_t *address)
{
    struct tensor late[LENT_MAX];
    struct loan loan = {.request_id = request_id,
                        .until_ns = clock_monotonic_ns() + LENT_MS * UINT64_C(1000000)};
    tensor_share(&loan.tensor, tensor);
    pthread_mutex_lock(&lent->lock);
    int late_count = take_late_locked(lent, late);
    bool ok = request_id && lent->count < LENT_MAX;
    for (int i = 0; ok && i < lent->count; i++)
        ok = lent->loans[i].request_id != request_id;
    if (ok) {
        *address = (uint64_t)(uintptr_t)loan.tensor.data;
        lent->loans[lent->count++] = loan;
    }
    pthread_mutex_unlock(&lent->lock);
    for (int i = 0; i < late_count; i++)
        tensor_release(&late[i]);
    if (!ok)
        tensor_release(&loan.tensor);
    return ok;
}

bool lent_end(struct lent *lent, int64_t request_id)
{
    struct tensor tensor = {0};
    pthread_mutex_lock(&lent->lock);
    bool found = false;
    for (int i = 0; i < lent->count && !found; i++) {
        found = lent->loans[i].request_id == request_id;
        if (found)
            tensor = take_locked(lent, i);
    }
    pthread_mutex_unlock(&lent->lock);
    tensor_release(&tensor);
    return found;
}
