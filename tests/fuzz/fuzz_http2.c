/*
 * fuzz_http2.c - what a client may say over HTTP/2: calls are answered, the rest is hung up on,
 * and others are served as before.
 */

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "proto/rpc.h"
#include "tests/fuzz/fuzz.h"

static struct rpc_server *server;
static struct rpc_client *client;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards: kept */
static struct rpc_call *kept;

static void echo(void *self, struct rpc_call *call)
{
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    (void)self;
    rpc_call_reply(call, bytes, size);
}

static struct rpc_call *swap_kept(struct rpc_call *call)
{
    pthread_mutex_lock(&lock);
    struct rpc_call *before = kept;
    kept = call;
    pthread_mutex_unlock(&lock);
    return before;
}

static void gone(void *arg)
{
    (void)arg;
}

/* Answered when the next is kept, by when its client may have gone. */
static void keep(void *self, struct rpc_call *call)
{
    (void)self;
    rpc_call_watch(call, gone, malloc(1));
    struct rpc_call *before = swap_kept(call);
    if (before)
        rpc_call_reply(before, "late", 4);
}

struct counted {
    struct rpc_source base;
    size_t left;
};

static int next(struct rpc_source *source, struct rpc_piece pieces[RPC_PIECES_MAX], bool *last)
{
    static const char bytes[4000];
    struct counted *counted = (struct counted *)source;
    pieces[0] = (struct rpc_piece){.data = bytes, .size = sizeof(bytes)};
    *last = !counted->left--;
    return 1;
}

static void free_counted(struct rpc_source *source)
{
    free(source);
}

/* As many messages as its request has bytes. */
static void many(void *self, struct rpc_call *call)
{
    struct counted *counted = alloc_bytes(sizeof(*counted));
    (void)self;
    (void)rpc_call_bytes(call, &counted->left);
    counted->base = (struct rpc_source){next, free_counted};
    rpc_call_reply_from(call, &counted->base);
}

static const struct rpc_method methods[] = {{"/e", echo}, {"/k", keep}, {"/m", many}, {0}};

static void begin(void)
{
    struct error err;
    const struct rpc_server_options options = {.address = "127.0.0.1:0",
                                               .message_bytes_max = 1 << 12};
    server = rpc_server_start(&options, methods, NULL, &err);
    FUZZ_CHECK(server);
    const struct rpc_client_options to = {.address = rpc_server_address(server),
                                          .message_bytes_max = 1 << 12};
    client = rpc_client_new(&to, &err);
    FUZZ_CHECK(client);
}

static void say(int to, const void *data, size_t size)
{
    (void)!send(to, data, size, MSG_NOSIGNAL);
}

/* All of it, until the server hangs up; it does as soon as nothing more comes. */
static void talk(const uint8_t *data, size_t size)
{
    static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
    const char *port = strrchr(rpc_server_address(server), ':') + 1;
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)strtol(port, NULL, 10)),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct linger resets = {.l_onoff = 1}; /* leaves no port in waiting behind */
    char answer[4096];
    int to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FUZZ_CHECK(to >= 0 && !connect(to, (const struct sockaddr *)&address, sizeof(address)));
    setsockopt(to, SOL_SOCKET, SO_LINGER, &resets, sizeof(resets));
    if (!size || data[0] & 1)
        say(to, hello, sizeof(hello)); /* its NUL is the last of the frame */
    if (size && data[0] & 2) {         /* in two pieces */
        say(to, data + 1, (size - 1) / 2);
        data += (size - 1) / 2;
        size -= (size - 1) / 2;
    }
    if (size)
        say(to, data + 1, size - 1);
    shutdown(to, SHUT_WR);
    while (recv(to, answer, sizeof(answer), 0) > 0) {
    }
    close(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str request = {0}, answer = {0};
    struct error err;
    if (!server)
        begin();
    talk(data, size);
    str_add_bytes(&request, data, size < 1000 ? size : 1000);
    FUZZ_CHECK(rpc_client_call(client, "/e", &request, &answer, 60000, &err));
    FUZZ_CHECK(answer.size == request.size &&
               (!answer.size || !memcmp(answer.data, request.data, answer.size)));
    str_release(&request);
    str_release(&answer);
    return 0;
}
