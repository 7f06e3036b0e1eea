/* prepare_test.c - files by their hashes and the other tasks' addresses, from a server that
 * fails in every way. */
/* Faults of docs/reliability.md: F41. */

#include <sodium.h>
#include <sys/stat.h>

#include "base/mailbox.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/link.h"
#include "scheduler/agent/prepare.h"
#include "tests/unit/folder.h"
#include "tests/unit/scheduler/agent_server.h"

#define LARGE_BYTES (LIMIT_SHIP_BYTES * 10 + 17)

static struct { /* what the server has and does; the test's thread sets it between calls */
    const char *bytes;
    size_t size;
    enum error_code refuse;
    int refuse_after; /* calls that succeed before */
    bool torn;        /* other bytes than the hash says */
    int fetches;
    int tasks_wanted; /* told before all are met */
    const char *certificate;
    int meets;
} yard;

static void on_fetch(void *self, struct rpc_call *call)
{
    (void)self;
    struct error err;
    struct agent_fetch_request request;
    struct arena *arena = arena_new();
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    CHECK_OK(agent_fetch_request_unpack(bytes, size, arena, &request, &err), &err);
    if (yard.refuse && yard.fetches++ >= yard.refuse_after) {
        fail_call(call, yard.refuse, "the server refuses");
    } else {
        size_t at = (size_t)request.offset < yard.size ? (size_t)request.offset : yard.size;
        size_t left = yard.size - at;
        struct agent_fetch_response piece = {yard.bytes + at,
                                             left < LIMIT_SHIP_BYTES ? left : LIMIT_SHIP_BYTES};
        if (yard.torn)
            piece.data = "other";
        if (yard.torn)
            piece.data_size = 5;
        struct str out = {0};
        agent_fetch_response_pack(&piece, &out);
        rpc_call_reply(call, out.data, out.size);
        str_release(&out);
    }
    arena_free(arena);
}

static void on_meet(void *self, struct rpc_call *call)
{
    (void)self;
    struct error err;
    struct agent_meet_request request;
    struct arena *arena = arena_new();
    size_t size;
    const void *bytes = rpc_call_bytes(call, &size);
    CHECK_OK(agent_meet_request_unpack(bytes, size, arena, &request, &err), &err);
    CHECK_TEXT(request.host, "node-a");
    CHECK_INT(request.port, 20001);
    const struct agent_task_address all[] = {{"chief", 0, "node-a:20001"},
                                             {"worker", 0, "node-b:20002"}};
    bool met = ++yard.meets >= yard.tasks_wanted;
    const struct agent_meet_response response = {all, met ? 2 : 0,
                                                 met ? yard.certificate : NULL, "the key\n"};
    struct str out = {0};
    agent_meet_response_pack(&response, &out);
    rpc_call_reply(call, out.data, out.size);
    str_release(&out);
    arena_free(arena);
}

static const struct rpc_method methods[] = {
    {AGENT_PATH_FETCH, on_fetch}, {AGENT_PATH_MEET, on_meet}, {0}};

struct bench {
    struct rpc_server *server;
    struct mailbox *mailbox;
    struct link *link;
    json_t *start;
    const char *folder;
    struct prepare *prepare;
    struct error err;
};

static const struct agent_task_ref task = {1, 2, "chief", 0};

/* A job of `tasks` tasks with one file, `path`, of `size` bytes. */
static struct bench bench_open(const char *name, const char *path, const char *bytes,
                               size_t size, int tasks)
{
    struct bench bench = {.folder = folder_path(name)};
    uint8_t hash[crypto_hash_sha256_BYTES];
    char text[2 * sizeof(hash) + 1];
    char *address = alloc_printf("local:prepare-%s", name);
    const struct rpc_server_options options = {
        .address = address, .message_bytes_max = LIMIT_CONTROL_MESSAGE_BYTES};
    memset(&yard, 0, sizeof(yard));
    yard.bytes = bytes;
    yard.size = size;
    yard.tasks_wanted = 1;
    crypto_hash_sha256(hash, (const uint8_t *)bytes, size);
    sodium_bin2hex(text, sizeof(text), hash, sizeof(hash));
    bench.server = rpc_server_start(&options, methods, NULL, &bench.err);
    CHECK_OK(bench.server != NULL, &bench.err);
    bench.mailbox = mailbox_new(4);
    bench.link = link_new(address, bench.mailbox);
    CHECK_OK(link_connect(bench.link, NULL, &bench.err), &bench.err);
    char *work = alloc_printf("%s/work", bench.folder);
    CHECK_OK(files_make_folder(work, &bench.err), &bench.err);
    bench.start = json_pack("{s:i, s:{s:{s:s}, s:i}}", "port", 20001, "program", "files", path,
                            text, "tasks", tasks);
    bench.prepare = prepare_new(bench.folder, bench.start, NULL);
    free(work);
    free(address);
    return bench;
}

static void bench_close(struct bench *bench)
{
    prepare_free(bench->prepare);
    link_cancel(bench->link);
    link_free(bench->link);
    rpc_server_stop(bench->server);
    mailbox_free(bench->mailbox);
    json_decref(bench->start);
}

static enum prepare_result go_on(struct bench *bench)
{
    return prepare_go_on(bench->prepare, bench->link, &task, "node-a", &bench->err);
}

/* Whether work/PATH has these bytes. */
static bool has(const struct bench *bench, const char *path, const char *bytes, size_t size)
{
    char *whole = alloc_printf("%s/work/%s", bench->folder, path);
    char *found = alloc_bytes(size + 1);
    FILE *file = fopen(whole, "rb");
    bool same = file && fread(found, 1, size + 1, file) == size && !memcmp(found, bytes, size);
    if (file)
        fclose(file);
    free(found);
    free(whole);
    return same;
}

TEST(prepare_fetches_files_in_pieces)
{
    char *bytes = alloc_bytes(LARGE_BYTES);
    for (int i = 0; i < LARGE_BYTES; i++)
        bytes[i] = (char)(i * 31 + i / 1000);
    struct bench bench = bench_open("large", "a/b/c.bin", bytes, LARGE_BYTES, 1);
    int turns = 0;
    enum prepare_result result;
    while ((result = go_on(&bench)) == PREPARE_MORE)
        turns++;
    CHECK_OK(result == PREPARE_DONE, &bench.err);
    CHECK(turns >= 1); /* others had their turns meanwhile */
    CHECK(has(&bench, "a/b/c.bin", bytes, LARGE_BYTES));
    /* Alone it needs no meeting, and is its own cluster. */
    CHECK_INT(yard.meets, 0);
    json_t *cluster = json_object_get(bench.start, "cluster");
    CHECK_INT(json_array_size(cluster), 1);
    CHECK_TEXT(files_text(json_array_get(cluster, 0), "address"), "127.0.0.1:20001");
    bench_close(&bench);
    free(bytes);
}

/* A piece's size exactly, and nothing at all: where the end is not seen by a short piece. */
TEST(prepare_fetches_files_of_every_size)
{
    static const size_t sizes[] = {0, 1, LIMIT_SHIP_BYTES, 2 * LIMIT_SHIP_BYTES};
    char *bytes = alloc_bytes(2 * LIMIT_SHIP_BYTES);
    for (int i = 0; i < ARRAY_LEN(sizes); i++) {
        char name[20];
        snprintf(name, sizeof(name), "size-%d", i);
        struct bench bench = bench_open(name, "f", bytes, sizes[i], 1);
        enum prepare_result result;
        while ((result = go_on(&bench)) == PREPARE_MORE) {
        }
        CHECK_OK(result == PREPARE_DONE, &bench.err);
        CHECK(has(&bench, "f", bytes, sizes[i]));
        bench_close(&bench);
    }
    free(bytes);
}

/* A server that goes away in the middle is asked again, from where it stopped. */
TEST(prepare_goes_on_after_a_fault)
{
    char *bytes = alloc_bytes(LARGE_BYTES);
    memset(bytes, 'x', LARGE_BYTES);
    struct bench bench = bench_open("fault", "f", bytes, LARGE_BYTES, 1);
    yard.refuse = UNAVAILABLE;
    yard.refuse_after = 5;
    enum prepare_result result;
    while ((result = go_on(&bench)) == PREPARE_MORE) {
    }
    CHECK_INT(result, PREPARE_ABSENT);
    CHECK_INT(bench.err.code, UNAVAILABLE);
    yard.refuse = OK;
    while ((result = go_on(&bench)) == PREPARE_MORE) {
    }
    CHECK_OK(result == PREPARE_DONE, &bench.err);
    CHECK(has(&bench, "f", bytes, LARGE_BYTES));
    bench_close(&bench);
    free(bytes);
}

TEST(prepare_says_what_cannot_be_had)
{
    static const struct {
        const char *path;
        enum error_code refuse;
        bool torn;
        enum error_code code;
        const char *says;
    } rows[] = {
        {"gone", NOT_FOUND, false, NOT_FOUND, "the server refuses"},
        {"denied", DENIED, false, DENIED, "the server refuses"},
        {"torn", OK, true, DATA_LOSS, "torn came with another SHA-256"},
        {"../out", OK, false, INVALID, "'../out' cannot name a file of a job"},
        {"/etc/x", OK, false, INVALID, "'/etc/x' cannot name a file of a job"},
    };
    for (int i = 0; i < ARRAY_LEN(rows); i++) {
        char name[20];
        snprintf(name, sizeof(name), "refused-%d", i);
        struct bench bench = bench_open(name, rows[i].path, "bytes", 5, 1);
        yard.refuse = rows[i].refuse;
        yard.torn = rows[i].torn;
        CHECK_INT(go_on(&bench), PREPARE_FAILED);
        CHECK_INT(bench.err.code, rows[i].code);
        if (!strstr(bench.err.text, rows[i].says))
            CHECK_STOP("%s: %s", rows[i].path, bench.err.text);
        bench_close(&bench);
    }
}

TEST(prepare_waits_for_the_other_tasks)
{
    struct bench bench = bench_open("meets", "f", "x", 1, 2);
    yard.tasks_wanted = 3;
    CHECK_INT(go_on(&bench), PREPARE_LATER);
    CHECK_INT(yard.meets, 1);
    uint64_t again_us = prepare_again_us(bench.prepare);
    CHECK(again_us > clock_monotonic_us() - 1000000);
    CHECK_INT(go_on(&bench), PREPARE_LATER); /* before its time nobody is asked */
    CHECK(yard.meets == 1 || clock_monotonic_us() >= again_us);
    enum prepare_result result;
    while ((result = go_on(&bench)) == PREPARE_LATER)
        usleep(1000);
    CHECK_OK(result == PREPARE_DONE, &bench.err);
    CHECK_INT(yard.meets, 3);
    json_t *cluster = json_object_get(bench.start, "cluster");
    CHECK_INT(json_array_size(cluster), 2);
    CHECK_TEXT(files_text(json_array_get(cluster, 0), "role"), "chief");
    CHECK_TEXT(files_text(json_array_get(cluster, 1), "address"), "node-b:20002");
    bench_close(&bench);
}

/* The tasks of a model have a certificate, which nobody else can read; programs have none. */
TEST(prepare_keeps_the_certificate)
{
    struct stat info;
    char text[40] = "";
    struct bench bench = bench_open("certified", "f", "x", 1, 2);
    char *path = alloc_printf("%s/" PREPARE_CERTIFICATE, bench.folder);
    FILE *old = fopen(path, "w"); /* of an agent that fell */
    fclose(old);
    yard.certificate = "the certificate\n";
    enum prepare_result result;
    while ((result = go_on(&bench)) == PREPARE_MORE || result == PREPARE_LATER) {
    }
    CHECK_OK(result == PREPARE_DONE, &bench.err);
    CHECK_TEXT(files_text(bench.start, "certificate"), PREPARE_CERTIFICATE);
    CHECK_INT(stat(path, &info), 0);
    CHECK_INT(info.st_mode & 0777, 0400);
    FILE *file = fopen(path, "r");
    CHECK(fread(text, 1, sizeof(text) - 1, file) > 0);
    CHECK_TEXT(text, "the certificate\nthe key\n");
    fclose(file);
    free(path);
    bench_close(&bench);
}
