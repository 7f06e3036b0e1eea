/* duty_test.c - threads that wait for events, and those that leave meanwhile. */

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "proto/duty.h"
#include "tests/unit/proto/counted.h"

enum { EVENTS = 16 };

static struct error err;
static struct duty *duty;
static int epoll, files[EVENTS];
static int served, left, refused, returned; /* guarded by count_lock */

static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER; /* guards: all below */
static pthread_cond_t gate_moves = PTHREAD_COND_INITIALIZER;
static bool is_open;

static void set_gate(bool open)
{
    pthread_mutex_lock(&gate_lock);
    is_open = open;
    pthread_cond_broadcast(&gate_moves);
    pthread_mutex_unlock(&gate_lock);
}

static void pass_gate(void)
{
    pthread_mutex_lock(&gate_lock);
    while (!is_open)
        pthread_cond_wait(&gate_moves, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
}

enum kind { QUICK = 1, LONG, WAITS }; /* what an event asks for: it is what is written */

static int held;

static void begin_work(void *arg)
{
    CHECK(arg == &held);
    count_up(&left, 1);
}

static void work_long(void *arg)
{
    CHECK(arg == &left);
    pass_gate();
}

static void end_work(void *arg)
{
    CHECK(arg == &held);
    count_up(&returned, 1);
    count_up(&served, 1);
}

static const struct duty_work long_work = {work_long, &left, begin_work, end_work, &held};

static void serve(void *self, const struct epoll_event *event)
{
    uint64_t kind;
    CHECK(self == &served);
    CHECK_INT(read(files[event->data.u32], &kind, sizeof(kind)), sizeof(kind));
    if (kind == WAITS)
        pass_gate();
    if (kind == LONG && duty_later(duty, &long_work)) {
        CHECK(!duty_later(duty, &long_work)); /* one work is enough */
        return;
    }
    if (kind == LONG)
        count_up(&refused, 1);
    count_up(&served, 1);
}

static void add_file(int index)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u32 = (uint32_t)index};
    files[index] = eventfd(0, EFD_CLOEXEC);
    CHECK(files[index] >= 0);
    CHECK_INT(epoll_ctl(epoll, EPOLL_CTL_ADD, files[index], &event), 0);
}

static void begin(void)
{
    epoll = epoll_create1(EPOLL_CLOEXEC);
    const struct duty_options options = {
        .epoll = epoll, .name = "test", .serve = serve, .self = &served};
    CHECK(epoll >= 0);
    for (int i = 0; i < EVENTS; i++)
        add_file(i);
    served = left = refused = returned = 0;
    set_gate(false);
    duty = duty_start(&options, &err);
    CHECK_OK(duty, &err);
}

static void end(void)
{
    for (int i = 0; i < EVENTS; i++)
        close(files[i]);
    close(epoll);
}

static void tell(int index, enum kind kind)
{
    const uint64_t number = kind;
    CHECK_INT(write(files[index], &number, sizeof(number)), sizeof(number));
}

TEST(duty_tells_one_thread_of_each_event)
{
    begin();
    CHECK(!duty_later(duty, &long_work)); /* nobody has told this thread of an event */
    for (int i = 0; i < 500; i++) {
        tell(i % EVENTS, QUICK);
        wait_for(&served, i + 1);
    }
    duty_end(duty);
    CHECK_INT(served, 500);
    tell(0, QUICK); /* nobody is there */
    usleep(10000);
    CHECK_INT(served, 500);
    end();
}

/* However many leave, others serve. */
TEST(duty_goes_on_without_those_that_have_left)
{
    enum { LEAVE = EVENTS - 1 };
    begin();
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < LEAVE; i++) /* at once */
            tell(i, LONG);
        wait_for(&left, round * LEAVE);
        int before = count_of(&served);
        for (int i = 1; i <= 50; i++) {
            tell(LEAVE, QUICK);
            wait_for(&served, before + i);
        }
        set_gate(true);
        wait_for(&served, before + 50 + LEAVE);
        set_gate(false);
    }
    CHECK_INT(refused, 0);
    duty_end(duty);
    end();
}

static void *end_duty(void *arg)
{
    (void)arg;
    duty_end(duty);
    count_up(&returned, 100);
    return NULL;
}

/* It does not wait for those that have left, who come back to nothing. */
TEST(duty_ends_without_those_that_have_left)
{
    enum { LEAVE = 5 };
    begin();
    for (int i = 0; i < LEAVE; i++)
        tell(i, LONG);
    wait_for(&left, LEAVE);
    duty_end(duty);
    CHECK_INT(count_of(&returned), 0);
    set_gate(true);
    wait_for(&served, LEAVE);
    usleep(20000); /* they end */
    end();
}

/* But for those that serve; and nobody leaves when it is over. */
TEST(duty_waits_for_those_that_serve)
{
    pthread_t thread;
    begin();
    tell(0, WAITS);
    usleep(20000);
    CHECK_INT(pthread_create(&thread, NULL, end_duty, NULL), 0);
    usleep(20000);
    CHECK_INT(count_of(&returned), 0);
    CHECK_INT(count_of(&served), 0);
    set_gate(true);
    pthread_join(thread, NULL);
    CHECK_INT(served, 1);
    end();
}

static pthread_barrier_t both;

static void leave_late(void *self, const struct epoll_event *event)
{
    (void)event;
    CHECK(self == &left);
    pthread_barrier_wait(&both);
    pass_gate();
    CHECK(!duty_later(duty, &long_work));
    count_up(&refused, 1);
}

TEST(duty_lets_nobody_leave_at_its_end)
{
    pthread_t thread;
    epoll = epoll_create1(EPOLL_CLOEXEC);
    const struct duty_options options = {
        .epoll = epoll, .name = "test", .serve = leave_late, .self = &left};
    CHECK_INT(pthread_barrier_init(&both, NULL, 2), 0);
    for (int i = 0; i < EVENTS; i++)
        add_file(i);
    refused = returned = 0;
    set_gate(false);
    duty = duty_start(&options, &err);
    CHECK_OK(duty, &err);
    tell(0, QUICK);
    pthread_barrier_wait(&both);
    CHECK_INT(pthread_create(&thread, NULL, end_duty, NULL), 0);
    usleep(50000); /* it is called off */
    set_gate(true);
    pthread_join(thread, NULL);
    CHECK_INT(refused, 1);
    pthread_barrier_destroy(&both);
    end();
}

/* One serves still when there may be no more threads. */
TEST(duty_has_a_limit)
{
    enum { MANY = LIMIT_WORKER_THREADS + 5 };
    begin();
    for (int i = 0; i < MANY; i++) {
        tell(0, LONG);
        for (int ms = 0; count_of(&left) + count_of(&refused) < i + 1; ms++) {
            CHECK(ms < PATIENCE_MS);
            usleep(200);
        }
    }
    CHECK_INT(left, LIMIT_WORKER_THREADS - 1);
    CHECK_INT(refused, MANY - (LIMIT_WORKER_THREADS - 1));
    tell(1, QUICK);
    wait_for(&served, refused + 1);
    set_gate(true);
    wait_for(&served, MANY + 1);
    duty_end(duty);
    end();
}
