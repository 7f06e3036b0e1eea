/* rpc_parts_test.c - answers of several messages, whose memory is lent. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "proto/rpc.h"
#include "tests/unit/test.h"

enum { PIECE_BYTES = 1 << 18 };

static atomic_int lent, given_back, sources, messages_made;
static char memory[PIECE_BYTES];

struct counted { /* a source of so many messages */
    struct rpc_source base;
    int left;
};

static void give_back(void *arg)
{
    CHECK(arg == memory);
    atomic_fetch_add(&given_back, 1);
}

/* A number that is copied, and memory that is lent. */
static int next(struct rpc_source *source, struct rpc_piece pieces[RPC_PIECES_MAX], bool *last)
{
    struct counted *counted = (struct counted *)source;
    counted->left--;
    pieces[0] = (struct rpc_piece){.data = &counted->left, .size = sizeof(int)};
    pieces[1] = (struct rpc_piece){memory, sizeof(memory), give_back, memory};
    atomic_fetch_add(&lent, 1);
    atomic_fetch_add(&messages_made, 1);
    *last = !counted->left;
    return 2;
}

static void free_counted(struct rpc_source *source)
{
    atomic_fetch_sub(&sources, 1);
    free(source);
}

static void parts(void *self, struct rpc_call *call)
{
    (void)self;
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    struct counted *counted = alloc_bytes(sizeof(*counted));
    counted->base = (struct rpc_source){next, free_counted};
    CHECK_INT(size, sizeof(counted->left));
    memcpy(&counted->left, bytes, size);
    atomic_fetch_add(&sources, 1);
    rpc_call_reply_from(call, &counted->base);
}

static void refuse(void *self, struct rpc_call *call)
{
    (void)self;
    struct error err;
    (void)fail(&err, NOT_FOUND, "there is nothing");
    rpc_call_fail(call, &err);
}

static const struct rpc_method methods[] = {{"/t/Parts", parts}, {"/t/Refuse", refuse}, {0}};

struct taker {
    struct rpc_sink base;
    struct rpc_client *client;
    int count, refuse_at, cancel_at, hold_at; /* messages; 0: never */
    atomic_int held;
    pthread_mutex_t lock; /* guards: go, is_done, err */
    pthread_cond_t changed;
    bool go, is_done;
    struct error err;
};

static bool take(struct rpc_sink *sink, const void *bytes, size_t size, struct error *err)
{
    struct taker *taker = (struct taker *)sink;
    (void)bytes;
    CHECK_INT(size, sizeof(int) + PIECE_BYTES);
    taker->count++;
    if (taker->count == taker->hold_at) {
        atomic_store(&taker->held, 1);
        pthread_mutex_lock(&taker->lock);
        while (!taker->go)
            pthread_cond_wait(&taker->changed, &taker->lock);
        pthread_mutex_unlock(&taker->lock);
    }
    if (taker->count == taker->cancel_at)
        rpc_client_cancel(taker->client);
    return taker->count != taker->refuse_at || fail(err, OUT_OF_RANGE, "enough");
}

static void done(struct rpc_sink *sink, const struct error *err)
{
    struct taker *taker = (struct taker *)sink;
    pthread_mutex_lock(&taker->lock);
    CHECK(!taker->is_done);
    taker->is_done = true;
    if (err)
        taker->err = *err;
    pthread_cond_broadcast(&taker->changed);
    pthread_mutex_unlock(&taker->lock);
}

static const char *const addresses[] = {"127.0.0.1:0", "socket:"};

#define EACH_TRANSPORT(i) for (int i = 0; i < ARRAY_LEN(addresses); i++)

static struct rpc_server *server;

static void open_pair(struct taker *taker, const char *address)
{
    struct error err;
    const struct rpc_server_options options = {.address = address,
                                               .message_bytes_max = 1 << 22};
    atomic_store(&lent, 0);
    atomic_store(&given_back, 0);
    atomic_store(&messages_made, 0);
    server = rpc_server_start(&options, methods, NULL, &err);
    CHECK_OK(server, &err);
    const struct rpc_client_options to = {.address = rpc_server_address(server),
                                          .message_bytes_max = 1 << 22};
    taker->base = (struct rpc_sink){take, done};
    taker->client = rpc_client_new(&to, &err);
    CHECK_OK(taker->client, &err);
    pthread_mutex_init(&taker->lock, NULL);
    pthread_cond_init(&taker->changed, NULL);
}

static void start(struct taker *taker, const char *path, int messages)
{
    struct str request = {0};
    str_add_bytes(&request, &messages, sizeof(messages));
    rpc_client_start_into(taker->client, path, &request, &taker->base);
    str_release(&request);
}

static void await(struct taker *taker)
{
    pthread_mutex_lock(&taker->lock);
    while (!taker->is_done)
        pthread_cond_wait(&taker->changed, &taker->lock);
    pthread_mutex_unlock(&taker->lock);
}

/* All that was lent has come back once both ends are gone. */
static void close_pair(struct taker *taker)
{
    await(taker);
    rpc_client_free(taker->client);
    rpc_server_stop(server);
    for (int i = 0; i < 500 && atomic_load(&given_back) < atomic_load(&lent); i++)
        usleep(10000);
    CHECK_INT(atomic_load(&given_back), atomic_load(&lent));
    CHECK_INT(atomic_load(&sources), 0);
    pthread_cond_destroy(&taker->changed);
    pthread_mutex_destroy(&taker->lock);
}

TEST(parts_come_in_order_and_whole)
{
    EACH_TRANSPORT(t)
    {
        static const int counts[] = {1, 2, 40};
        for (int i = 0; i < ARRAY_LEN(counts); i++) {
            struct taker taker = {.err.code = OK};
            open_pair(&taker, addresses[t]);
            start(&taker, "/t/Parts", counts[i]);
            await(&taker);
            CHECK_INT(taker.err.code, OK);
            CHECK_INT(taker.count, counts[i]);
            close_pair(&taker);
        }
    }
}

TEST(parts_are_refused)
{
    EACH_TRANSPORT(t)
    {
        struct taker taker = {.refuse_at = 3};
        open_pair(&taker, addresses[t]);
        start(&taker, "/t/Parts", 1000);
        await(&taker);
        CHECK_INT(taker.err.code, OUT_OF_RANGE);
        CHECK_TEXT(taker.err.text, "enough");
        CHECK_INT(taker.count, 3);
        close_pair(&taker);
    }
}

TEST(parts_end_with_their_client)
{
    EACH_TRANSPORT(t)
    {
        struct taker taker = {.cancel_at = 3};
        open_pair(&taker, addresses[t]);
        start(&taker, "/t/Parts", 1000000);
        await(&taker);
        CHECK_INT(taker.err.code, CANCELLED);
        close_pair(&taker);
        CHECK(atomic_load(&messages_made) < 1000);
    }
}

/* Who takes slowly holds its source up. */
TEST(parts_wait_for_who_takes_them)
{
    EACH_TRANSPORT(t)
    {
        struct taker taker = {.hold_at = 2};
        open_pair(&taker, addresses[t]);
        start(&taker, "/t/Parts", 400);
        while (!atomic_load(&taker.held))
            usleep(1000);
        usleep(200000);
        CHECK(atomic_load(&messages_made) < 200);
        pthread_mutex_lock(&taker.lock);
        taker.go = true;
        pthread_cond_broadcast(&taker.changed);
        pthread_mutex_unlock(&taker.lock);
        await(&taker);
        CHECK_INT(taker.count, 400);
        close_pair(&taker);
    }
}

TEST(parts_that_are_none)
{
    EACH_TRANSPORT(t)
    {
        struct taker taker = {.err.code = OK};
        open_pair(&taker, addresses[t]);
        start(&taker, "/t/Refuse", 1);
        await(&taker);
        CHECK_INT(taker.err.code, NOT_FOUND);
        CHECK_TEXT(taker.err.text, "there is nothing");
        CHECK_INT(taker.count, 0);
        close_pair(&taker);
    }
}
