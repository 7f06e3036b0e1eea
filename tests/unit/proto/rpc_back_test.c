/* rpc_back_test.c - a server that went away and came back is reached again. */
/* Faults of docs/reliability.md: F1. */

#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/str.h"
#include "proto/rpc.h"
#include "server/certificate.h"
#include "tests/unit/test.h"

#define ROUNDS 2
#define TRIES 3
#define PAUSE_MS 400 /* between two calls of one who tries */
#define SOON_MS 1500 /* the library's longest pause is 1,000 ms, a fifth more or less */

static void echo(void *self, struct rpc_call *call)
{
    (void)self;
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    rpc_call_reply(call, bytes, size);
}

static const struct rpc_method methods[] = {{"/t/Echo", echo}, {0}};

static struct rpc_tls tls_make(struct arena *arena)
{
    struct error err;
    const uint8_t seed[CERTIFICATE_SEED_BYTES] = {5};
    struct rpc_tls tls = {.name = RPC_TASKS_NAME};
    CHECK_OK(certificate_make(seed, tls.name, arena, &tls.certificate, &tls.key, &err), &err);
    tls.ca = tls.certificate;
    return tls;
}

/* --- the server, in a process of its own: the library's threads serve all that is in one ---
 */

struct host {
    pid_t pid;
    int in, out;
    char address[64];
};

static void host_say(int fd, const char address[64])
{
    CHECK_INT(write(fd, address, 64), 64);
}

/* A byte on stdin starts the server, the next stops it; each is answered by its address. */
static void host_main(int in, int out)
{
    char byte, address[64] = "127.0.0.1:0";
    struct error err;
    struct arena *arena = arena_new();
    const struct rpc_tls tls = tls_make(arena);
    while (read(in, &byte, 1) == 1) {
        const struct rpc_server_options options = {
            .address = address, .message_bytes_max = 1 << 16, .tls = &tls};
        struct rpc_server *server = rpc_server_start(&options, methods, NULL, &err);
        CHECK_OK(server != NULL, &err);
        snprintf(address, sizeof(address), "%s", rpc_server_address(server));
        host_say(out, address);
        CHECK_INT(read(in, &byte, 1), 1);
        rpc_server_stop(server);
        host_say(out, address);
    }
    arena_free(arena);
}

static void host_open(struct host *host)
{
    int to[2], from[2];
    CHECK(!pipe(to) && !pipe(from));
    host->pid = fork();
    CHECK(host->pid >= 0);
    if (!host->pid) {
        close(to[1]);
        close(from[0]);
        host_main(to[0], from[1]);
        _exit(0);
    }
    close(to[0]);
    close(from[1]);
    host->in = to[1];
    host->out = from[0];
}

static void host_switch(struct host *host)
{
    CHECK_INT(write(host->in, "x", 1), 1);
    CHECK_INT(read(host->out, host->address, sizeof(host->address)), sizeof(host->address));
}

static void host_close(struct host *host)
{
    int status;
    close(host->in);
    CHECK_INT(waitpid(host->pid, &status, 0), host->pid);
    CHECK_INT(status, 0);
    close(host->out);
}

/* --- who calls it --- */

static bool answers(struct rpc_client *client)
{
    struct error err;
    struct str request = {0}, response = {0};
    bool ok = rpc_client_call(client, "/t/Echo", &request, &response, 5000, &err);
    CHECK(ok || err.code == UNAVAILABLE);
    str_release(&response);
    return ok;
}

/* Nobody calls meanwhile, so that the client itself must have looked after it. */
TEST(who_comes_back_is_reached_at_the_first_try)
{
    struct error err;
    struct host host;
    host_open(&host);
    struct arena *arena = arena_new();
    const struct rpc_tls tls = tls_make(arena);
    host_switch(&host);
    const struct rpc_client_options options = {
        .address = host.address, .message_bytes_max = 1 << 16, .tls = &tls};
    struct rpc_client *client = rpc_client_new(&options, &err);
    CHECK_OK(client != NULL, &err);
    CHECK(answers(client));
    for (int round = 0; round < ROUNDS; round++) {
        host_switch(&host);
        for (int i = 0; i < TRIES; i++) {
            CHECK(!answers(client));
            usleep(PAUSE_MS * 1000);
        }
        host_switch(&host);
        usleep(SOON_MS * 1000);
        CHECK(answers(client));
    }
    rpc_client_free(client);
    host_switch(&host);
    host_close(&host);
    arena_free(arena);
}
