/* authority_test.c - what the server's authority says of who calls. */

#include <openssl/pem.h>

#include "base/arena.h"
#include "base/str.h"
#include "db/db.h"
#include "proto/rpc.h"
#include "scheduler/agent/pin.h"
#include "server/authority.h"
#include "server/certificate.h"
#include "tests/unit/db/folder.h"

/* A key of this kind and a request signed with it: PEM, in the arena. */
static const char *make_request(const char *kind, struct arena *arena, const char **key)
{
    EVP_PKEY *pair = strcmp(kind, "EC") == 0 ? EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256")
                                             : EVP_PKEY_Q_keygen(NULL, NULL, kind);
    X509_REQ *request = X509_REQ_new();
    BIO *memory = BIO_new(BIO_s_mem()), *second = BIO_new(BIO_s_mem());
    char *bytes;
    CHECK(pair && request && X509_REQ_set_pubkey(request, pair));
    CHECK(X509_REQ_sign(request, pair, strcmp(kind, "EC") == 0 ? EVP_sha256() : NULL));
    CHECK(PEM_write_bio_X509_REQ(memory, request));
    CHECK(PEM_write_bio_PrivateKey(second, pair, NULL, NULL, 0, NULL, NULL));
    long size = BIO_get_mem_data(memory, &bytes);
    const char *text = arena_printf(arena, "%.*s", (int)size, bytes);
    size = BIO_get_mem_data(second, &bytes);
    *key = arena_printf(arena, "%.*s", (int)size, bytes);
    BIO_free(memory);
    BIO_free(second);
    X509_REQ_free(request);
    EVP_PKEY_free(pair);
    return text;
}

/* A server that answers with the name of who calls. */
static void tell_who(void *self, struct rpc_call *call)
{
    struct authority_node who;
    struct error err;
    if (authority_check(self, call, &who, &err))
        rpc_call_reply(call, who.name, strlen(who.name));
    else
        rpc_call_fail(call, &err);
}

static bool ask_who(const char *address, const struct rpc_tls *tls, char name[64],
                    struct error *err)
{
    struct str request = {0}, response = {0};
    const struct rpc_client_options options = {
        .address = address, .message_bytes_max = 1000, .tls = tls};
    struct rpc_client *client = rpc_client_new(&options, err);
    CHECK_OK(client, err);
    bool ok = rpc_client_call(client, "/e/Who", &request, &response, 3000, err);
    if (ok)
        snprintf(name, 64, "%s", str_text(&response));
    rpc_client_free(client);
    str_release(&request);
    str_release(&response);
    return ok;
}

TEST(a_node_is_known_by_its_certificate_alone)
{
    static const struct rpc_method methods[] = {{"/e/Who", tell_who}, {0}};
    struct error err;
    char *folder = folder_new();
    struct arena *arena = arena_new();
    struct db *db = db_open(folder, &err);
    CHECK_OK(db, &err);
    struct authority *authority = authority_new(db, folder, &err);
    CHECK_OK(authority, &err);
    const struct rpc_server_options options = {
        .address = "127.0.0.1:0", .message_bytes_max = 1000, .tls = authority_tls(authority)};
    struct rpc_server *server = rpc_server_start(&options, methods, authority, &err);
    CHECK_OK(server, &err);
    const char *address = rpc_server_address(server);

    /* Its certificate by its pin, and by no other. */
    char *shown = pin_fetch(address, authority_pin(authority), &err);
    CHECK_OK(shown, &err);
    CHECK_TEXT(shown, authority_tls(authority)->certificate);
    CHECK(!pin_fetch(address, "AAAA", &err) && err.code == DENIED);

    const struct authority_node node = {.name = "gpu-1", .token = 7};
    struct rpc_tls tls = {.ca = shown, .name = RPC_NODES_NAME};
    const char *request = make_request("ED25519", arena, &tls.key);
    CHECK_OK(authority_issue(authority, request, &node, arena, &tls.certificate, &err), &err);
    char name[64] = "";
    for (int i = 0; i < 2; i++) { /* as read, and as remembered */
        CHECK_OK(ask_who(address, &tls, name, &err), &err);
        CHECK_TEXT(name, "gpu-1");
    }

    struct rpc_tls bare = {.ca = shown, .name = RPC_NODES_NAME};
    CHECK(!ask_who(address, &bare, name, &err) && err.code == UNAUTHENTICATED);
    CHECK(strstr(err.text, "must show its certificate"));

    /* One of another authority of the same name, and our own as a node. */
    uint8_t seed[CERTIFICATE_SEED_BYTES] = {1};
    struct rpc_tls foreign = {.ca = shown, .name = RPC_NODES_NAME};
    CHECK_OK(certificate_sign(seed, RPC_NODES_NAME, "gpu-1", 60, arena, &foreign.certificate,
                              &foreign.key, &err),
             &err);
    CHECK(!ask_who(address, &foreign, name, &err) && err.code == UNAUTHENTICATED);
    CHECK(strstr(err.text, "not of this server's authority"));
    struct rpc_tls server_itself = *authority_tls(authority);
    server_itself.ca = shown;
    server_itself.name = RPC_NODES_NAME;
    CHECK(!ask_who(address, &server_itself, name, &err) && err.code == UNAUTHENTICATED);

    rpc_server_stop(server);
    authority_free(authority);
    db_close(db);
    free(shown);
    arena_free(arena);
    folder_free(folder);
}

TEST(the_key_of_the_folder_is_the_authority)
{
    struct error err;
    char *folder = folder_new();
    struct db *db = db_open(folder, &err);
    CHECK_OK(db, &err);
    struct authority *one = authority_new(db, folder, &err);
    CHECK_OK(one, &err);
    struct authority *again = authority_new(db, folder, &err);
    CHECK_OK(again, &err);
    CHECK_TEXT(authority_pin(one), authority_pin(again));
    char *path = alloc_printf("%s/secret.key", folder);
    CHECK(unlink(path) == 0);
    struct authority *other = authority_new(db, folder, &err);
    CHECK_OK(other, &err);
    CHECK(strcmp(authority_pin(one), authority_pin(other)) != 0);
    authority_free(one);
    authority_free(again);
    authority_free(other);
    free(path);
    db_close(db);
    folder_free(folder);
}

TEST(requests_are_of_ed25519_keys_and_whole)
{
    static const uint8_t seed[CERTIFICATE_SEED_BYTES] = {3};
    struct error err;
    struct arena *arena = arena_new();
    const char *key, *made;
    const char *good = make_request("ED25519", arena, &key);
    char *bent = arena_printf(arena, "%s", good);
    struct certificate_client client;
    CHECK_OK(certificate_answer(seed, "us", good, "n_1.a-b", 9, 60, arena, &made, &err), &err);
    CHECK_OK(certificate_read(seed, made, &client, &err), &err);
    CHECK_TEXT(client.name, "n_1.a-b");
    CHECK(client.mark == 9);
    bent[strlen(bent) - 40] ^= 1;
    CHECK(!certificate_answer(seed, "us", bent, "n", 9, 60, arena, &made, &err));
    CHECK(err.code == INVALID);
    const char *curve = make_request("EC", arena, &key);
    CHECK(!certificate_answer(seed, "us", curve, "n", 9, 60, arena, &made, &err));
    CHECK(!certificate_answer(seed, "us", "", "n", 9, 60, arena, &made, &err));
    CHECK(!certificate_answer(seed, "us", key, "n", 9, 60, arena, &made, &err));
    CHECK(!certificate_read(seed, "nothing", &client, &err));
    CHECK(err.code == UNAUTHENTICATED);
    arena_free(arena);
}
