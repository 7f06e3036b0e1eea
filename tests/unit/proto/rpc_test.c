/* rpc_test.c - all transports behave alike: every test runs over each of them. */
/* Faults of docs/reliability.md: F18 F41. */

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "base/str.h"
#include "proto/rpc.h"
#include "tests/unit/folder.h"

static const char *const addresses[] = {"local:test", "127.0.0.1:0", "socket:"};

extern char **environ;

#define EACH_TRANSPORT(i) for (int i = 0; i < ARRAY_LEN(addresses); i++)

struct service {
    struct mailbox *kept; /* calls of /t/Keep, answered by the tests */
    atomic_int saw_cancelled;
};

static void echo(void *self, struct rpc_call *call)
{
    (void)self;
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    rpc_call_reply(call, bytes, size);
}

static void refuse(void *self, struct rpc_call *call)
{
    (void)self;
    struct error err;
    error_at(&err, "/train/st\xc3\xa9ps", INVALID,
             "steps: found \"x\", a number is needed \xe2\x9c\x93");
    rpc_call_fail(call, &err);
}

static void keep(void *self, struct rpc_call *call)
{
    struct service *service = self;
    CHECK(mailbox_post(service->kept, call));
}

static void big(void *self, struct rpc_call *call)
{
    (void)self;
    struct str bytes = {0};
    memset(str_extend(&bytes, 3 << 20), 'x', 3 << 20);
    rpc_call_reply(call, bytes.data, bytes.size);
    str_release(&bytes);
}

static const struct rpc_method methods[] = {
    {"/t/Echo", echo}, {"/t/Refuse", refuse}, {"/t/Keep", keep}, {"/t/Big", big}, {0},
};

struct pair {
    struct service service;
    struct rpc_server *server;
    struct rpc_client *client;
    struct str request;
    struct str response;
};

static struct rpc_client *connect_to(const char *address)
{
    struct error err;
    const struct rpc_client_options options = {.address = address,
                                               .message_bytes_max = 1 << 21};
    struct rpc_client *client = rpc_client_new(&options, &err);
    CHECK_OK(client != NULL, &err);
    return client;
}

static void pair_open(struct pair *pair, const char *address)
{
    struct error err;
    const struct rpc_server_options options = {.address = address,
                                               .message_bytes_max = 1 << 22};
    *pair = (struct pair){.service.kept = mailbox_new(100)};
    pair->server = rpc_server_start(&options, methods, &pair->service, &err);
    CHECK_OK(pair->server != NULL, &err);
    pair->client = connect_to(rpc_server_address(pair->server));
}

static void pair_close(struct pair *pair)
{
    rpc_client_free(pair->client);
    rpc_server_stop(pair->server);
    mailbox_free(pair->service.kept);
    str_release(&pair->request);
    str_release(&pair->response);
}

static bool call(struct pair *pair, const char *path, int timeout_ms, struct error *err)
{
    return rpc_client_call(pair->client, path, &pair->request, &pair->response, timeout_ms,
                           err);
}

TEST(rpc_echoes_bytes)
{
    EACH_TRANSPORT(i)
    {
        struct pair pair;
        struct error err;
        pair_open(&pair, addresses[i]);
        CHECK_OK(call(&pair, "/t/Echo", 5000, &err), &err);
        CHECK_INT(pair.response.size, 0);
        str_add_bytes(&pair.request, "a\0b", 3);
        for (int n = 0; n < 100; n++) {
            CHECK_OK(call(&pair, "/t/Echo", 5000, &err), &err);
            CHECK_INT(pair.response.size, 3);
            CHECK(memcmp(pair.response.data, "a\0b", 3) == 0);
        }
        memset(str_extend(&pair.request, 2000000), 'y', 2000000);
        CHECK_OK(call(&pair, "/t/Echo", 5000, &err), &err);
        CHECK_INT(pair.response.size, 2000003);
        pair_close(&pair);
    }
}

TEST(rpc_carries_errors_whole)
{
    EACH_TRANSPORT(i)
    {
        struct pair pair;
        struct error err;
        pair_open(&pair, addresses[i]);
        str_add(&pair.response, "kept");
        CHECK_FAILS(call(&pair, "/t/Refuse", 5000, &err), &err, INVALID);
        CHECK_TEXT(err.text, "steps: found \"x\", a number is needed \xe2\x9c\x93");
        CHECK_TEXT(err.pointer, "/train/st\xc3\xa9ps");
        CHECK_TEXT(str_text(&pair.response), "kept");
        CHECK_FAILS(call(&pair, "/t/Nothing", 5000, &err), &err, UNIMPLEMENTED);
        pair_close(&pair);
    }
}

TEST(rpc_refuses_over_size)
{
    EACH_TRANSPORT(i)
    {
        struct pair pair;
        struct error err;
        pair_open(&pair, addresses[i]);
        CHECK_FAILS(call(&pair, "/t/Big", 5000, &err), &err, EXHAUSTED);
        memset(str_extend(&pair.request, 5 << 20), 'y', 5 << 20);
        CHECK_FAILS(call(&pair, "/t/Echo", 5000, &err), &err, EXHAUSTED);
        str_clear(&pair.request);
        CHECK_OK(call(&pair, "/t/Echo", 5000, &err), &err);
        pair_close(&pair);
    }
}

/* The deadline passes at the client; the server learns of it, and its answer goes nowhere. */
TEST(rpc_deadline)
{
    EACH_TRANSPORT(i)
    {
        struct pair pair;
        struct error err;
        pair_open(&pair, addresses[i]);
        uint64_t start = clock_monotonic_us();
        CHECK_FAILS(call(&pair, "/t/Keep", 200, &err), &err, DEADLINE);
        uint64_t took_us = clock_monotonic_us() - start;
        CHECK(took_us > 150000);
        CHECK(took_us < 3000000);
        struct rpc_call *kept = mailbox_take(pair.service.kept, 2000);
        CHECK(kept);
        for (int n = 0; n < 200 && !rpc_call_cancelled(kept); n++)
            usleep(10000);
        CHECK(rpc_call_cancelled(kept));
        rpc_call_reply(kept, "late", 4);
        pair_close(&pair);
    }
}

struct caller {
    struct pair *pair;
    pthread_t thread;
    bool ok;
    struct error err;
    struct str response;
};

static void *caller_main(void *argument)
{
    struct caller *caller = argument;
    struct str request = {0};
    caller->ok = rpc_client_call(caller->pair->client, "/t/Keep", &request, &caller->response,
                                 30000, &caller->err);
    return NULL;
}

/* Calls are kept and answered later, in another order, by another thread. */
TEST(rpc_answers_later)
{
    EACH_TRANSPORT(i)
    {
        struct pair pair;
        struct caller callers[8] = {0};
        pair_open(&pair, addresses[i]);
        for (int n = 0; n < ARRAY_LEN(callers); n++) {
            callers[n].pair = &pair;
            pthread_create(&callers[n].thread, NULL, caller_main, &callers[n]);
        }
        struct rpc_call *kept[ARRAY_LEN(callers)];
        for (int n = 0; n < ARRAY_LEN(callers); n++) {
            kept[n] = mailbox_take(pair.service.kept, 5000);
            CHECK(kept[n]);
            CHECK(!rpc_call_cancelled(kept[n]));
            CHECK(strlen(rpc_call_peer(kept[n])) > 0);
        }
        for (int n = ARRAY_LEN(callers) - 1; n >= 0; n--)
            rpc_call_reply(kept[n], "done", 4);
        for (int n = 0; n < ARRAY_LEN(callers); n++) {
            pthread_join(callers[n].thread, NULL);
            CHECK_OK(callers[n].ok, &callers[n].err);
            CHECK_TEXT(str_text(&callers[n].response), "done");
            str_release(&callers[n].response);
        }
        pair_close(&pair);
    }
}

TEST(rpc_cancel)
{
    EACH_TRANSPORT(i)
    {
        struct pair pair;
        struct error err;
        struct caller caller = {.pair = &pair};
        pair_open(&pair, addresses[i]);
        pthread_create(&caller.thread, NULL, caller_main, &caller);
        struct rpc_call *kept = mailbox_take(pair.service.kept, 5000);
        CHECK(kept);
        rpc_client_cancel(pair.client);
        pthread_join(caller.thread, NULL);
        CHECK(!caller.ok);
        CHECK_INT(caller.err.code, CANCELLED);
        CHECK_FAILS(call(&pair, "/t/Echo", 5000, &err), &err, CANCELLED);
        struct error gone;
        fail(&gone, ABORTED, "nobody listens");
        rpc_call_fail(kept, &gone);
        pair_close(&pair);
    }
}

TEST(rpc_nobody_there)
{
    static const char *const nowhere[] = {"local:nobody", "127.0.0.1:1", "socket:nobody"};
    EACH_TRANSPORT(i)
    {
        struct error err;
        struct str request = {0}, response = {0};
        struct rpc_client *client = connect_to(nowhere[i]);
        CHECK_FAILS(rpc_client_call(client, "/t/Echo", &request, &response, 3000, &err), &err,
                    UNAVAILABLE);
        CHECK(strstr(err.text, nowhere[i]));
        rpc_client_free(client);
    }
}

TEST(rpc_address_taken)
{
    EACH_TRANSPORT(i)
    {
        struct pair pair;
        struct error err;
        pair_open(&pair, addresses[i]);
        const char *taken = rpc_server_address(pair.server);
        const struct rpc_server_options options = {.address = taken, .message_bytes_max = 1000};
        CHECK_FAILS(rpc_server_start(&options, methods, NULL, &err), &err, UNAVAILABLE);
        CHECK(strstr(err.text, taken));
        pair_close(&pair);
    }
    struct error err;
    const struct rpc_server_options open = {.address = "0.0.0.0:0", .message_bytes_max = 1000};
    CHECK_FAILS(rpc_server_start(&open, methods, NULL, &err), &err, INVALID);
}

/* A server stops with a call that nobody answers; the client is told, and can reach the next.
 */
TEST(rpc_stop_with_open_call)
{
    EACH_TRANSPORT(i)
    {
        struct pair pair;
        struct error err;
        struct caller caller = {.pair = &pair};
        pair_open(&pair, addresses[i]);
        pthread_create(&caller.thread, NULL, caller_main, &caller);
        struct rpc_call *kept = mailbox_take(pair.service.kept, 5000);
        CHECK(kept);
        char address[100];
        snprintf(address, sizeof(address), "%s", rpc_server_address(pair.server));
        rpc_server_stop(pair.server);
        pthread_join(caller.thread, NULL);
        CHECK(!caller.ok);
        CHECK_INT(caller.err.code, UNAVAILABLE);
        CHECK(rpc_call_cancelled(kept));
        rpc_call_reply(kept, "late", 4);

        CHECK_FAILS(call(&pair, "/t/Echo", 1000, &err), &err, UNAVAILABLE);
        const struct rpc_server_options options = {.address = address,
                                                   .message_bytes_max = 1000};
        pair.server = rpc_server_start(&options, methods, &pair.service, &err);
        CHECK_OK(pair.server != NULL, &err);
        bool ok = false;
        for (int n = 0; n < 50 && !ok; n++) {
            ok = call(&pair, "/t/Echo", 1000, &err);
            if (!ok)
                usleep(100000);
        }
        CHECK_OK(ok, &err);
        pair_close(&pair);
    }
}

static void *echo_main(void *argument)
{
    struct caller *caller = argument;
    struct str request = {0};
    caller->ok = true;
    for (int n = 0; n < 100 && caller->ok; n++) {
        str_clear(&request);
        str_printf(&request, "call %d", n);
        caller->ok = rpc_client_call(caller->pair->client, "/t/Echo", &request,
                                     &caller->response, 10000, &caller->err) &&
                     strcmp(request.data, str_text(&caller->response)) == 0;
    }
    str_release(&request);
    str_release(&caller->response);
    return NULL;
}

TEST(rpc_many_threads)
{
    EACH_TRANSPORT(i)
    {
        struct pair pair;
        struct caller callers[4] = {0};
        pair_open(&pair, addresses[i]);
        for (int n = 0; n < ARRAY_LEN(callers); n++) {
            callers[n].pair = &pair;
            pthread_create(&callers[n].thread, NULL, echo_main, &callers[n]);
        }
        for (int n = 0; n < ARRAY_LEN(callers); n++) {
            pthread_join(callers[n].thread, NULL);
            CHECK_OK(callers[n].ok, &callers[n].err);
        }
        pair_close(&pair);
    }
}

/* --- Python's gRPC at the other end --- */

struct program {
    pid_t pid;
    int in;    /* its stdin */
    FILE *out; /* what it says, errors too */
};

/* Starts words[0] (ended by a NULL), found by PATH; false when there is no such program. */
static bool program_start(struct program *program, const char *const *words)
{
    int in[2], out[2];
    CHECK_INT(pipe2(in, O_CLOEXEC), 0);
    CHECK_INT(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in[0], 0);
    posix_spawn_file_actions_adddup2(&files, out[1], 1);
    posix_spawn_file_actions_adddup2(&files, out[1], 2);
    int failed =
        posix_spawnp(&program->pid, words[0], &files, NULL, (char *const *)words, environ);
    posix_spawn_file_actions_destroy(&files);
    close(in[0]);
    close(out[1]);
    program->in = in[1];
    program->out = fdopen(out[0], "r");
    CHECK(program->out);
    if (!failed)
        return true;
    close(program->in);
    fclose(program->out);
    return false;
}

/* Lets its stdin end, takes what it still says, and returns its status. */
static int program_end(struct program *program)
{
    char line[200];
    int status;
    close(program->in);
    while (fgets(line, sizeof(line), program->out))
        print_message("%s", line);
    fclose(program->out);
    CHECK_INT(waitpid(program->pid, &status, 0), program->pid);
    return status;
}

static bool peer_start(struct program *peer, const char *mode, const char *address)
{
    const char *python = getenv("TRAINYARD_PYTHON");
    const char *const words[] = {python ? python : "python3", "tests/interop/rpc_peer.py", mode,
                                 address, NULL};
    return program_start(peer, words);
}

static bool peer_exists(const char *test)
{
    struct program peer;
    if (peer_start(&peer, "check", NULL)) {
        char line[200];
        while (fgets(line, sizeof(line), peer.out)) {
        }
        if (program_end(&peer) == 0)
            return true;
    }
    print_message("skip %s: python3 has no module grpc\n", test);
    return false;
}

TEST(rpc_python_calls_us)
{
    struct pair pair;
    struct program peer;
    char line[100] = "";
    if (!peer_exists("rpc_python_calls_us"))
        return;
    pair_open(&pair, "127.0.0.1:0");
    CHECK(peer_start(&peer, "call", rpc_server_address(pair.server)));
    while (fgets(line, sizeof(line), peer.out) && strcmp(line, "ok\n") != 0)
        print_error("%s", line);
    CHECK_INT(program_end(&peer), 0);
    CHECK_TEXT(line, "ok\n");
    struct rpc_call *kept = mailbox_take(pair.service.kept, 1000);
    CHECK(kept);
    rpc_call_reply(kept, "", 0);
    pair_close(&pair);
}

TEST(rpc_we_call_python)
{
    struct error err;
    struct program peer;
    struct str request = {0}, response = {0};
    char line[100], address[100];
    if (!peer_exists("rpc_we_call_python"))
        return;
    CHECK(peer_start(&peer, "serve", NULL));
    CHECK(fgets(line, sizeof(line), peer.out));
    snprintf(address, sizeof(address), "127.0.0.1:%ld", strtol(line, NULL, 10));
    struct rpc_client *client = connect_to(address);
    str_add_bytes(&request, "a\0b", 3);
    CHECK_OK(rpc_client_call(client, "/p/Echo", &request, &response, 5000, &err), &err);
    CHECK_INT(response.size, 3);
    CHECK_FAILS(rpc_client_call(client, "/p/Refuse", &request, &response, 5000, &err), &err,
                NOT_FOUND);
    CHECK_TEXT(err.text, "no such thing");
    CHECK_FAILS(rpc_client_call(client, "/p/None", &request, &response, 5000, &err), &err,
                UNIMPLEMENTED);

    /* The peer dies: the next call says so at once. */
    CHECK(kill(peer.pid, SIGKILL) == 0);
    uint64_t start = clock_monotonic_us();
    CHECK_FAILS(rpc_client_call(client, "/p/Echo", &request, &response, 5000, &err), &err,
                UNAVAILABLE);
    CHECK(clock_monotonic_us() - start < 2000000);
    rpc_client_free(client);
    CHECK(program_end(&peer) != 0);
    str_release(&request);
    str_release(&response);
}

/* --- TLS --- */

static char *file_text(const char *path)
{
    struct str text = {0};
    FILE *file = fopen(path, "re");
    CHECK(file);
    char part[1000];
    size_t size;
    while ((size = fread(part, 1, sizeof(part), file)) > 0)
        str_add_bytes(&text, part, size);
    fclose(file);
    return str_take(&text);
}

/* Both sides show a certificate of the same authority; a client without one gets nowhere. */
TEST(rpc_mutual_tls)
{
    struct program openssl;
    char certificate_path[256], key_path[256];
    snprintf(certificate_path, sizeof(certificate_path), "%s", folder_path("cert.pem"));
    snprintf(key_path, sizeof(key_path), "%s", folder_path("key.pem"));
    const char *const words[] = {"openssl",
                                 "req",
                                 "-x509",
                                 "-newkey",
                                 "ec",
                                 "-pkeyopt",
                                 "ec_paramgen_curve:P-256",
                                 "-nodes",
                                 "-keyout",
                                 key_path,
                                 "-out",
                                 certificate_path,
                                 "-subj",
                                 "/CN=test",
                                 "-addext",
                                 "subjectAltName=IP:127.0.0.1",
                                 "-days",
                                 "2",
                                 NULL};
    if (!program_start(&openssl, words)) {
        print_message("skip rpc_mutual_tls: no openssl to make certificates with\n");
        return;
    }
    CHECK_INT(program_end(&openssl), 0);
    char *certificate = file_text(certificate_path), *key = file_text(key_path);
    const struct rpc_tls both = {.ca = certificate, .certificate = certificate, .key = key},
                         half = {.ca = certificate};
    struct error err;
    struct str request = {0}, response = {0};
    const struct rpc_server_options options = {
        .address = "127.0.0.1:0", .message_bytes_max = 1 << 20, .tls = &both};
    struct rpc_server *server = rpc_server_start(&options, methods, NULL, &err);
    CHECK_OK(server != NULL, &err);
    const char *address = rpc_server_address(server);

    struct rpc_client *client = rpc_client_new(
        &(struct rpc_client_options){
            .address = address, .message_bytes_max = 1 << 20, .tls = &both},
        &err);
    CHECK_OK(client != NULL, &err);
    CHECK_OK(rpc_client_call(client, "/t/Echo", &request, &response, 5000, &err), &err);
    rpc_client_free(client);

    const struct rpc_tls *strangers[] = {&half, NULL};
    for (int i = 0; i < ARRAY_LEN(strangers); i++) {
        client = rpc_client_new(&(struct rpc_client_options){.address = address,
                                                             .message_bytes_max = 1 << 20,
                                                             .tls = strangers[i]},
                                &err);
        CHECK_OK(client != NULL, &err);
        CHECK_FAILS(rpc_client_call(client, "/t/Echo", &request, &response, 5000, &err), &err,
                    UNAVAILABLE);
        rpc_client_free(client);
    }
    rpc_server_stop(server);
    str_release(&response);
    free(certificate);
    free(key);
}
