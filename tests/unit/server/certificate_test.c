/* certificate_test.c - what a seed makes, and who may speak with it. */

#include "base/arena.h"
#include "base/str.h"
#include "proto/rpc.h"
#include "server/certificate.h"
#include "tests/unit/test.h"

static struct rpc_tls made(uint8_t fill, struct arena *arena)
{
    struct error err;
    uint8_t seed[CERTIFICATE_SEED_BYTES];
    struct rpc_tls tls = {.name = RPC_TASKS_NAME};
    memset(seed, fill, sizeof(seed));
    CHECK_OK(certificate_make(seed, RPC_TASKS_NAME, arena, &tls.certificate, &tls.key, &err),
             &err);
    tls.ca = tls.certificate;
    return tls;
}

TEST(a_seed_makes_one_certificate)
{
    struct arena *arena = arena_new();
    struct rpc_tls one = made(1, arena), same = made(1, arena), other = made(2, arena);
    CHECK_TEXT(one.certificate, same.certificate);
    CHECK_TEXT(one.key, same.key);
    CHECK(strcmp(one.certificate, other.certificate) != 0 && strcmp(one.key, other.key) != 0);
    CHECK(strstr(one.certificate, "-----BEGIN CERTIFICATE-----"));
    CHECK(strstr(one.key, "-----BEGIN PRIVATE KEY-----"));
    CHECK(!strstr(one.certificate, "PRIVATE"));
    arena_free(arena);
}

static void echo(void *self, struct rpc_call *call)
{
    (void)self;
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    rpc_call_reply(call, bytes, size);
}

static bool speaks(const char *address, const struct rpc_tls *tls)
{
    struct error err;
    struct str request = {0}, response = {0};
    const struct rpc_client_options options = {
        .address = address, .message_bytes_max = 1000, .tls = tls};
    struct rpc_client *client = rpc_client_new(&options, &err);
    CHECK_OK(client, &err);
    str_add(&request, "hello");
    bool ok = rpc_client_call(client, "/e/Echo", &request, &response, 3000, &err);
    CHECK(ok ? !strcmp(str_text(&response), "hello") : err.code == UNAVAILABLE);
    rpc_client_free(client);
    str_release(&request);
    str_release(&response);
    return ok;
}

TEST(who_has_it_may_speak_and_nobody_else)
{
    static const struct rpc_method methods[] = {{"/e/Echo", echo}, {0}};
    struct error err;
    struct arena *arena = arena_new();
    struct rpc_tls ours = made(1, arena), others = made(2, arena), nobody, unnamed;
    const struct rpc_server_options options = {
        .address = "127.0.0.1:0", .message_bytes_max = 1000, .tls = &ours};
    struct rpc_server *server = rpc_server_start(&options, methods, NULL, &err);
    CHECK_OK(server, &err);
    const char *address = rpc_server_address(server);
    nobody = unnamed = ours;
    nobody.certificate = nobody.key = NULL;
    unnamed.name = NULL; /* then it had to be the certificate of an address */
    CHECK(speaks(address, &ours));
    CHECK(!speaks(address, &others));
    CHECK(!speaks(address, &nobody));
    CHECK(!speaks(address, &unnamed));
    CHECK(!speaks(address, NULL));
    others.ca = ours.ca; /* who trusts us is not yet trusted */
    CHECK(!speaks(address, &others));
    rpc_server_stop(server);
    arena_free(arena);
}

TEST(who_is_signed_for_is_a_client_for_a_while)
{
    static const struct rpc_method methods[] = {{"/e/Echo", echo}, {0}};
    struct error err;
    struct arena *arena = arena_new();
    struct rpc_tls ours = made(1, arena), server_tls = ours, pass = ours, late = ours,
                   other = ours;
    uint8_t seed[CERTIFICATE_SEED_BYTES], others[CERTIFICATE_SEED_BYTES];
    char name[201];
    memset(seed, 1, sizeof(seed));
    memset(others, 2, sizeof(others));
    memset(name, 'n', sizeof(name) - 1); /* longer than a certificate takes */
    name[sizeof(name) - 1] = '\0';
    CHECK_OK(certificate_sign(seed, RPC_TASKS_NAME, name, 600, arena, &pass.certificate,
                              &pass.key, &err),
             &err);
    CHECK_OK(certificate_sign(seed, RPC_TASKS_NAME, "ana", -1, arena, &late.certificate,
                              &late.key, &err),
             &err);
    CHECK_OK(certificate_sign(others, RPC_TASKS_NAME, "ana", 600, arena, &other.certificate,
                              &other.key, &err),
             &err);
    CHECK(strcmp(pass.key, ours.key) != 0 && strcmp(pass.key, late.key) != 0);
    const struct rpc_server_options options = {
        .address = "127.0.0.1:0", .message_bytes_max = 1000, .tls = &server_tls};
    struct rpc_server *server = rpc_server_start(&options, methods, NULL, &err);
    CHECK_OK(server, &err);
    CHECK(speaks(rpc_server_address(server), &pass));
    CHECK(!speaks(rpc_server_address(server), &late));
    CHECK(!speaks(rpc_server_address(server), &other));
    rpc_server_stop(server);
    server_tls = pass; /* it is no task: those who trust tasks do not take it for one */
    server = rpc_server_start(&options, methods, NULL, &err);
    CHECK_OK(server, &err);
    CHECK(!speaks(rpc_server_address(server), &ours));
    rpc_server_stop(server);
    arena_free(arena);
}
