/*
 * rendezvous.c - a table of values without a receiver and receivers without a value.
 *
 * A key has one or the other, oldest first; what meets leaves the table.
 */

#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "runtime/held.h"
#include "runtime/rendezvous.h"
#include "runtime/tensor.h"

enum { BUCKETS = 256 };

struct waiting {
    struct waiting *next;          /* of the bucket, newest last */
    rendezvous_receiver *receiver; /* NULL: a value */
    void *arg;
    struct tensor value;
    bool dead;
    bool changing; /* the value: who receives it gets a copy */
    char key[];    /* NUL-terminated */
};

struct rendezvous {
    int references; /* __atomic */
    char *task;
    rendezvous_fetch *fetch; /* (optional) */
    void *arg;

    pthread_mutex_t lock; /* guards: all below */
    struct waiting *buckets[BUCKETS];
    int count;
    bool aborted;
    struct error status; /* of the abort */
};

/* --- keys --- */

bool rendezvous_check_key(const char *key, struct error *err)
{
    int parts = 1;
    for (const char *c = key; *c; c++)
        parts += *c == ';';
    if (parts != 5 || strlen(key) > LIMIT_RENDEZVOUS_KEY_BYTES)
        return fail(err, INVALID, "Invalid  rendezvous key: %s", key);
    return true;
}

bool rendezvous_key_is_from(const char *key, const char *task)
{
    size_t size = strlen(task);
    return !strncmp(key, task, size) && (key[size] == '/' || key[size] == ';');
}

static struct waiting **bucket_of(struct rendezvous *rendezvous, const char *key)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const char *c = key; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    return &rendezvous->buckets[(hash ^ hash >> 32) % BUCKETS];
}

/* --- life --- */

struct rendezvous *rendezvous_new(const char *task, rendezvous_fetch *fetch, void *arg)
{
    struct rendezvous *rendezvous = alloc_bytes(sizeof(*rendezvous));
    rendezvous->references = 1;
    rendezvous->task = alloc_text(task);
    rendezvous->fetch = fetch;
    rendezvous->arg = arg;
    pthread_mutex_init(&rendezvous->lock, NULL);
    return rendezvous;
}

void rendezvous_ref(struct rendezvous *rendezvous)
{
    __atomic_add_fetch(&rendezvous->references, 1, __ATOMIC_RELAXED);
}

static void free_waiting(struct waiting *waiting)
{
    if (!waiting->receiver)
        held_drop(&waiting->value);
    tensor_release(&waiting->value);
    free(waiting);
}

void rendezvous_unref(struct rendezvous *rendezvous)
{
    if (!rendezvous || __atomic_sub_fetch(&rendezvous->references, 1, __ATOMIC_ACQ_REL))
        return;
    for (int i = 0; i < BUCKETS; i++)
        while (rendezvous->buckets[i]) {
            struct waiting *waiting = rendezvous->buckets[i];
            assert(!waiting->receiver); /* who waits holds a reference */
            rendezvous->buckets[i] = waiting->next;
            free_waiting(waiting);
        }
    pthread_mutex_destroy(&rendezvous->lock);
    free(rendezvous->task);
    free(rendezvous);
}

/* --- the table --- */

/* The oldest of the key; takes it out if it is of the kind that is looked for. */
static struct waiting *take_locked(struct rendezvous *rendezvous, const char *key,
                                   bool receivers)
{
    struct waiting **at = bucket_of(rendezvous, key);
    while (*at && strcmp((*at)->key, key) != 0)
        at = &(*at)->next;
    struct waiting *found = *at;
    if (!found || !found->receiver == receivers)
        return NULL;
    *at = found->next;
    rendezvous->count--;
    return found;
}

static bool add_locked(struct rendezvous *rendezvous, const char *key,
                       const struct waiting *what, struct error *err)
{
    if (rendezvous->count >= LIMIT_RENDEZVOUS_WAITING)
        return fail(err, EXHAUSTED, "more than %d tensors of one step wait to be exchanged",
                    LIMIT_RENDEZVOUS_WAITING);
    if (!what->receiver && !held_add(&what->value, err))
        return false;
    size_t size = strlen(key) + 1;
    struct waiting *added = alloc_bytes(sizeof(*added) + size);
    *added = *what;
    memcpy(added->key, key, size);
    struct waiting **at = bucket_of(rendezvous, key);
    while (*at)
        at = &(*at)->next;
    *at = added;
    rendezvous->count++;
    return true;
}

static _Thread_local struct tensor *gift;

void rendezvous_give(rendezvous_receiver *receiver, void *arg, struct tensor *value)
{
    gift = value;
    receiver(arg, value, false, NULL);
    gift = NULL;
}

void rendezvous_take(const struct tensor *value, struct tensor *out)
{
    if (value != gift) {
        tensor_share(out, value);
        return;
    }
    *out = *gift;
    *gift = (struct tensor){0};
    gift = NULL;
}

bool rendezvous_is_given(const struct tensor *value)
{
    return value == gift;
}

/* A value that may change: as it is now. */
static void give_copy(rendezvous_receiver *receiver, void *arg, const struct tensor *value)
{
    struct error err;
    struct tensor copy = {0};
    if (tensor_clone_sent(&copy, value, &err))
        rendezvous_give(receiver, arg, &copy);
    else
        receiver(arg, NULL, false, &err);
    tensor_release(&copy);
}

static void give_what(rendezvous_receiver *receiver, void *arg, struct waiting *what)
{
    if (what->dead)
        receiver(arg, &what->value, true, NULL);
    else if (what->changing)
        give_copy(receiver, arg, &what->value);
    else
        rendezvous_give(receiver, arg, &what->value);
}

static bool send_what(struct rendezvous *rendezvous, const char *key, struct waiting *what,
                      struct error *err)
{
    struct waiting *receiver = NULL;
    pthread_mutex_lock(&rendezvous->lock);
    bool ok = !rendezvous->aborted;
    if (!ok)
        *err = rendezvous->status;
    else if (!(receiver = take_locked(rendezvous, key, true)))
        ok = add_locked(rendezvous, key, what, err);
    pthread_mutex_unlock(&rendezvous->lock);
    if (receiver)
        give_what(receiver->receiver, receiver->arg, what);
    free(receiver);
    if (receiver || !ok)
        tensor_release(&what->value);
    return ok;
}

bool rendezvous_send(struct rendezvous *rendezvous, const char *key, const struct tensor *value,
                     bool dead, struct error *err)
{
    struct waiting what = {.dead = dead};
    if (!dead)
        rendezvous_take(value, &what.value);
    return send_what(rendezvous, key, &what, err);
}

bool rendezvous_send_own(struct rendezvous *rendezvous, const char *key, struct tensor *value,
                         bool dead, struct error *err)
{
    gift = value;
    bool ok = rendezvous_send(rendezvous, key, value, dead, err);
    gift = NULL;
    return ok;
}

bool rendezvous_send_changing(struct rendezvous *rendezvous, const char *key,
                              const struct tensor *value, struct error *err)
{
    struct waiting what = {.changing = true};
    tensor_share(&what.value, value);
    return send_what(rendezvous, key, &what, err);
}

void rendezvous_receive_local(struct rendezvous *rendezvous, const char *key,
                              rendezvous_receiver *receiver, void *arg)
{
    const struct waiting what = {.receiver = receiver, .arg = arg};
    struct waiting *value = NULL;
    struct error err;
    pthread_mutex_lock(&rendezvous->lock);
    bool ok = !rendezvous->aborted;
    if (!ok)
        err = rendezvous->status;
    else if (!(value = take_locked(rendezvous, key, false)))
        ok = add_locked(rendezvous, key, &what, &err);
    pthread_mutex_unlock(&rendezvous->lock);
    if (!ok) {
        receiver(arg, NULL, false, &err);
    } else if (value) {
        held_drop(&value->value);
        give_what(receiver, arg, value);
        tensor_release(&value->value);
        free(value);
    }
}

static _Thread_local uint64_t travel_ns;

void rendezvous_set_travel(uint64_t ns)
{
    travel_ns = ns;
}

uint64_t rendezvous_travel(void)
{
    return travel_ns;
}

/* What another task was asked for; its receiver waits here, so that an abort reaches it. */
struct fetched {
    struct rendezvous *rendezvous;
    char key[];
};

static void deliver(void *arg, const struct tensor *value, bool dead, const struct error *err)
{
    struct fetched *fetched = arg;
    struct error late; /* the step is over: nobody waits any more */
    if (err)
        rendezvous_abort(fetched->rendezvous, err);
    else
        (void)!rendezvous_send(fetched->rendezvous, fetched->key, value, dead, &late);
    rendezvous_unref(fetched->rendezvous);
    free(fetched);
}

void rendezvous_receive(struct rendezvous *rendezvous, const char *key,
                        rendezvous_receiver *receiver, void *arg)
{
    size_t size = strlen(key) + 1;
    struct fetched *fetched = NULL;
    if (rendezvous->fetch && !rendezvous_key_is_from(key, rendezvous->task)) {
        fetched = alloc_bytes(sizeof(*fetched) + size);
        memcpy(fetched->key, key, size);
        rendezvous_ref(rendezvous);
        fetched->rendezvous = rendezvous;
    }
    rendezvous_receive_local(rendezvous, key, receiver, arg);
    if (fetched)
        fetched->rendezvous->fetch(fetched->rendezvous->arg, fetched->key, deliver, fetched);
}

bool rendezvous_withdraw(struct rendezvous *rendezvous, const char *key, const void *arg)
{
    pthread_mutex_lock(&rendezvous->lock);
    struct waiting **at = bucket_of(rendezvous, key);
    while (*at && !((*at)->receiver && (*at)->arg == arg && !strcmp((*at)->key, key)))
        at = &(*at)->next;
    struct waiting *found = *at;
    if (found) {
        *at = found->next;
        rendezvous->count--;
    }
    pthread_mutex_unlock(&rendezvous->lock);
    free(found);
    return found;
}

int rendezvous_count(struct rendezvous *rendezvous)
{
    pthread_mutex_lock(&rendezvous->lock);
    int count = rendezvous->count;
    pthread_mutex_unlock(&rendezvous->lock);
    return count;
}

/* --- the end --- */

void rendezvous_abort(struct rendezvous *rendezvous, const struct error *err)
{
    struct waiting *all = NULL;
    pthread_mutex_lock(&rendezvous->lock);
    if (!rendezvous->aborted) {
        rendezvous->aborted = true;
        rendezvous->status = *err;
        rendezvous->count = 0;
        for (int i = 0; i < BUCKETS; i++)
            while (rendezvous->buckets[i]) {
                struct waiting *waiting = rendezvous->buckets[i];
                rendezvous->buckets[i] = waiting->next;
                waiting->next = all;
                all = waiting;
            }
    }
    pthread_mutex_unlock(&rendezvous->lock);
    while (all) {
        struct waiting *waiting = all;
        all = waiting->next;
        if (waiting->receiver)
            waiting->receiver(waiting->arg, NULL, false, err);
        free_waiting(waiting);
    }
}

bool rendezvous_aborted(struct rendezvous *rendezvous, struct error *err)
{
    pthread_mutex_lock(&rendezvous->lock);
    bool aborted = rendezvous->aborted;
    if (aborted)
        *err = rendezvous->status;
    pthread_mutex_unlock(&rendezvous->lock);
    return aborted;
}
