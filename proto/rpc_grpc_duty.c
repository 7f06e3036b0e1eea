/* rpc_grpc_duty.c - threads that serve a completion queue in turn. */

#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "proto/rpc_grpc_duty.h"

static void unref(struct rpc_grpc_duty *duty)
{
    pthread_mutex_lock(&duty->lock);
    bool last = !--duty->references;
    pthread_mutex_unlock(&duty->lock);
    if (!last)
        return;
    close(duty->timer);
    pthread_cond_destroy(&duty->changed);
    pthread_mutex_destroy(&duty->lock);
    free(duty);
}

/* What a handler has left. */
struct left {
    struct rpc_grpc_duty *duty;
    void (*work)(void *arg);
    void *arg;
};

static _Thread_local struct left *left; /* NULL: no handler is called */

static void set_timer(const struct rpc_grpc_duty *duty, long ns)
{
    const struct itimerspec spec = {.it_value.tv_nsec = ns};
    int failed = timerfd_settime(duty->timer, 0, &spec, NULL);
    assert(!failed);
}

/* True: it is still on duty. */
static bool do_work(struct rpc_grpc_duty *duty, const struct left *todo)
{
    pthread_mutex_lock(&duty->lock);
    duty->at_work = true;
    pthread_mutex_unlock(&duty->lock);
    set_timer(duty, RPC_GRPC_DUTY_MS * 1000000);
    todo->work(todo->arg);
    pthread_mutex_lock(&duty->lock);
    bool stays = duty->at_work;
    duty->at_work = false;
    if (stays)
        set_timer(duty, 0);
    else
        duty->away--;
    pthread_mutex_unlock(&duty->lock);
    return stays;
}

/* Until another has taken over, or the queue is drained (false). */
static bool serve(struct rpc_grpc_duty *duty)
{
    gpr_timespec never = gpr_inf_future(GPR_CLOCK_MONOTONIC);
    for (;;) {
        struct left todo = {.duty = duty};
        grpc_event event = grpc_completion_queue_next(duty->queue, never, NULL);
        if (event.type == GRPC_QUEUE_SHUTDOWN)
            return false;
        left = &todo;
        rpc_grpc_completed(&event);
        left = NULL;
        if (todo.work && !do_work(duty, &todo))
            return true;
    }
}

/* As the one that does; true: it has taken over, false: the queue is drained. */
static bool stand_by(struct rpc_grpc_duty *duty)
{
    uint64_t times;
    bool takes = false;
    pthread_mutex_lock(&duty->lock);
    while (!takes && !duty->over) {
        pthread_mutex_unlock(&duty->lock);
        (void)!read(duty->timer, &times, sizeof(times));
        pthread_mutex_lock(&duty->lock);
        takes = duty->at_work;
        duty->at_work = false;
    }
    duty->away += takes;
    duty->stands_by = false;
    pthread_mutex_unlock(&duty->lock);
    return takes;
}

/* Whether it is to stand by from now on. */
static bool may_stand_by(struct rpc_grpc_duty *duty)
{
    pthread_mutex_lock(&duty->lock);
    bool may = !duty->stands_by && !duty->over;
    duty->stands_by = duty->stands_by || may;
    pthread_mutex_unlock(&duty->lock);
    return may;
}

static void *end_thread(struct rpc_grpc_duty *duty, bool over)
{
    pthread_mutex_lock(&duty->lock);
    if (over) {
        duty->over = true;
        set_timer(duty, 1); /* who stands by sees it */
    }
    duty->threads--;
    pthread_cond_broadcast(&duty->changed);
    pthread_mutex_unlock(&duty->lock);
    unref(duty);
    return NULL;
}

/* It stands by. */
static void *rpc_spare_main(void *arg)
{
    struct rpc_grpc_duty *duty = arg;
    bool over = false;
    do {
        if (!stand_by(duty))
            break;
        over = !serve(duty);
    } while (!over && may_stand_by(duty));
    return end_thread(duty, over);
}

/* It is on duty. */
static void *rpc_server_main(void *arg)
{
    struct rpc_grpc_duty *duty = arg;
    if (!serve(duty))
        return end_thread(duty, true);
    return may_stand_by(duty) ? rpc_spare_main(duty) : end_thread(duty, false);
}

static bool add_thread_locked(struct rpc_grpc_duty *duty, void *(*main)(void *))
{
    pthread_t thread;
    pthread_attr_t attr;
    if (duty->threads >= LIMIT_WORKER_THREADS)
        return false;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    bool ok = !pthread_create(&thread, &attr, main, duty);
    pthread_attr_destroy(&attr);
    if (ok) {
        pthread_setname_np(thread, "rpc");
        duty->threads++;
        duty->references++;
    }
    return ok;
}

struct rpc_grpc_duty *rpc_grpc_duty_start(grpc_completion_queue *queue)
{
    struct rpc_grpc_duty *duty = alloc_bytes(sizeof(*duty));
    duty->queue = queue;
    duty->references = 1;
    duty->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    assert(duty->timer >= 0);
    pthread_mutex_init(&duty->lock, NULL);
    pthread_cond_init(&duty->changed, NULL);
    pthread_mutex_lock(&duty->lock);
    bool ok = add_thread_locked(duty, rpc_server_main);
    assert(ok);
    pthread_mutex_unlock(&duty->lock);
    return duty;
}

void rpc_grpc_duty_end(struct rpc_grpc_duty *duty)
{
    pthread_mutex_lock(&duty->lock);
    while (!duty->over || duty->threads > duty->away)
        pthread_cond_wait(&duty->changed, &duty->lock);
    pthread_mutex_unlock(&duty->lock);
    unref(duty);
}

bool rpc_grpc_duty_leave(struct rpc_grpc_duty *duty, void (*work)(void *arg), void *arg)
{
    if (!left || left->duty != duty || left->work)
        return false;
    pthread_mutex_lock(&duty->lock);
    duty->stands_by = duty->stands_by || add_thread_locked(duty, rpc_spare_main);
    bool ok = duty->stands_by;
    pthread_mutex_unlock(&duty->lock);
    if (ok) {
        left->work = work;
        left->arg = arg;
    }
    return ok;
}
