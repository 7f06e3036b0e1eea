/*
 * fuzz_socket.c - what a task of this machine may say over a socket: calls are answered, the
 * rest is hung up on, and others are served as before.
 */

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/str.h"
#include "proto/channel.h"
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

static const struct rpc_method methods[] = {{"/e", echo}, {"/k", keep}, {0}};

static void begin(void)
{
    struct error err;
    const struct rpc_server_options options = {.address = "socket:",
                                               .message_bytes_max = 1 << 12};
    server = rpc_server_start(&options, methods, NULL, &err);
    FUZZ_CHECK(server);
    const struct rpc_client_options to = {.address = rpc_server_address(server),
                                          .message_bytes_max = 1 << 12};
    client = rpc_client_new(&to, &err);
    FUZZ_CHECK(client);
}

/* All of it, until the server hangs up; it does as soon as nothing more comes. */
static void talk(const uint8_t *data, size_t size)
{
    static const struct frame_head hello = {.kind = FRAME_HELLO};
    struct sockaddr_un address;
    struct error err;
    uint32_t address_size;
    char answer[4096];
    FUZZ_CHECK(channel_address(rpc_server_address(server), &address, &address_size, &err));
    int to = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FUZZ_CHECK(to >= 0 && !connect(to, (const struct sockaddr *)&address, address_size));
    bool greets = !size || data[0] & 1;
    if (greets)
        (void)!send(to, &hello, sizeof(hello), MSG_NOSIGNAL);
    if (size)
        (void)!send(to, data + 1, size - 1, MSG_NOSIGNAL);
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
    FUZZ_CHECK(rpc_client_call(client, "/e", &request, &answer, 10000, &err));
    FUZZ_CHECK(answer.size == request.size &&
               (!answer.size || !memcmp(answer.data, request.data, answer.size)));
    str_release(&request);
    str_release(&answer);
    return 0;
}
