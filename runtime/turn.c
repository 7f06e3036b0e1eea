/* turn.c - one value at a time: its number, and who waits for it to be used. */

#include "runtime/turn.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "proto/attention.h"
#include "runtime/tensor.h"

#define NS_PER_BYTE UINT64_C(10) /* of a slow fetch, and of what is done with it */

enum { WAIT_MS_MAX = 1000, LOOK_MS = 1 };

static struct {
    pthread_once_t once;
    pthread_mutex_t lock; /* guards: all below */
    pthread_cond_t ended; /* by the monotonic clock */
    uint64_t last;        /* number of a turn */
    uint64_t current;     /* 0: nobody has it */
    int64_t step_id;      /* of the current one, */
    pthread_t thread;     /* ... and who fetched it */
    bool is_taken;        /* ... unless it was kept here */
} turns = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

/* What a buffer was before it had a turn. */
struct in_turn {
    uint64_t turn;
    void (*destroy)(struct buffer *buffer);
    void *owner;
};

static void make_once(void)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&turns.ended, &attr);
    pthread_condattr_destroy(&attr);
}

/* --- a turn --- */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t longest_ns(size_t bytes)
{
    uint64_t max_ns = (uint64_t)WAIT_MS_MAX * 1000000;
    return bytes < max_ns / NS_PER_BYTE ? bytes * NS_PER_BYTE : max_ns;
}

static bool is_free_locked(int64_t step_id)
{
    if (!turns.current)
        return true;
    return !turns.is_taken &&
           (turns.step_id == step_id || pthread_equal(turns.thread, pthread_self()));
}

static void wait_locked(void)
{
    uint64_t until_ns = now_ns() + (uint64_t)LOOK_MS * 1000000;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                                   .tv_nsec = (long)(until_ns % 1000000000)};
    pthread_cond_timedwait(&turns.ended, &turns.lock, &until);
}

uint64_t turn_begin(int64_t step_id, size_t bytes)
{
    uint64_t until_ns = now_ns() + longest_ns(bytes);
    bool over = false;
    pthread_once(&turns.once, make_once);
    pthread_mutex_lock(&turns.lock);
    while (!is_free_locked(step_id) && !over) {
        wait_locked();
        pthread_mutex_unlock(&turns.lock); /* what is called has locks of its own */
        over = now_ns() >= until_ns || attention_is_over();
        pthread_mutex_lock(&turns.lock);
    }
    uint64_t turn = turns.current = ++turns.last;
    turns.step_id = step_id;
    turns.thread = pthread_self();
    turns.is_taken = false;
    pthread_mutex_unlock(&turns.lock);
    return turn;
}

void turn_end(uint64_t turn)
{
    pthread_mutex_lock(&turns.lock);
    if (turns.current == turn) {
        turns.current = 0;
        pthread_cond_broadcast(&turns.ended);
    }
    pthread_mutex_unlock(&turns.lock);
}

uint64_t turn_current(void)
{
    pthread_mutex_lock(&turns.lock);
    uint64_t turn = turns.current;
    pthread_mutex_unlock(&turns.lock);
    return turn;
}

/* --- its value --- */

static void destroy_in_turn(struct buffer *buffer)
{
    struct in_turn *in_turn = buffer->owner;
    uint64_t turn = in_turn->turn;
    buffer->destroy = in_turn->destroy;
    buffer->owner = in_turn->owner;
    free(in_turn);
    buffer->destroy(buffer);
    turn_end(turn);
}

void turn_give(uint64_t turn, struct tensor *value)
{
    struct buffer *buffer = value->buffer;
    struct in_turn *in_turn;
    assert(__atomic_load_n(&buffer->references, __ATOMIC_ACQUIRE) == 1);
    if (buffer->destroy == destroy_in_turn) {
        in_turn = buffer->owner;
    } else {
        in_turn = alloc_bytes(sizeof(*in_turn));
        in_turn->destroy = buffer->destroy;
        in_turn->owner = buffer->owner;
        buffer->destroy = destroy_in_turn;
        buffer->owner = in_turn;
    }
    in_turn->turn = turn;
}

void turn_take(struct tensor *value)
{
    if (tensor_bytes(value) < TURN_BYTES_MIN || !tensor_is_exclusive(value))
        return;
    pthread_mutex_lock(&turns.lock);
    uint64_t turn = turns.current = ++turns.last;
    turns.is_taken = true;
    pthread_mutex_unlock(&turns.lock);
    turn_give(turn, value);
}

void turn_keep(const struct tensor *value)
{
    const struct buffer *buffer = value->buffer;
    if (buffer && buffer->destroy == destroy_in_turn)
        turn_end(((const struct in_turn *)buffer->owner)->turn);
}

/* --- who wants it --- */

static _Thread_local bool is_wanted;

void turn_set_wanted(bool wanted)
{
    is_wanted = wanted;
}

bool turn_wanted(void)
{
    return is_wanted;
}
