/* prepare.c - fetches files by their hashes, and meets the other tasks. */

#include <fcntl.h>
#include <sodium.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/limits.h"
#include "base/path.h"
#include "proto/agent_pb.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/link.h"
#include "scheduler/agent/prepare.h"
#include "scheduler/agent/program.h"

#define PIECES_A_TURN 8
#define WAIT_FIRST_MS 5
#define WAIT_MAX_MS 250

struct prepare {
    char *folder;
    json_t *start; /* borrowed */
    void *file;    /* jansson's iterator over the files: the one that is fetched */
    bool begun;    /* the iterator has been set */
    int fd;        /* of the file, -1 */
    int64_t size;  /* of it, as far as it has come */
    crypto_hash_sha256_state hash;
    int wait_ms;
    uint64_t again_us;
};

struct prepare *prepare_new(const char *folder, json_t *start)
{
    struct prepare *prepare = alloc_bytes(sizeof(*prepare));
    prepare->folder = alloc_text(folder);
    prepare->start = start;
    prepare->fd = -1;
    return prepare;
}

void prepare_free(struct prepare *prepare)
{
    if (!prepare)
        return;
    if (prepare->fd >= 0)
        close(prepare->fd);
    free(prepare->folder);
    free(prepare);
}

uint64_t prepare_again_us(const struct prepare *prepare)
{
    return prepare->again_us;
}

/* What a call that failed means: whether to ask again. */
static enum prepare_result call_failed(const struct error *err)
{
    switch (err->code) {
    case INVALID:
    case DENIED:
    case NOT_FOUND:
    case OUT_OF_RANGE:
    case DATA_LOSS:
    case UNIMPLEMENTED:
        return PREPARE_FAILED;
    default:
        return PREPARE_ABSENT;
    }
}

/* --- files --- */

static json_t *program_files(const struct prepare *prepare)
{
    return json_object_get(json_object_get(prepare->start, "program"), "files");
}

/* Opens the next file, with the folders above it; false when that fails. */
static bool file_open(struct prepare *prepare, const char *path, struct error *err)
{
    if (!path_is_below(path))
        return fail(err, INVALID, "'%.100s' cannot name a file of a job", path);
    char *whole = alloc_printf("%s/" PROGRAM_WORK "/%s", prepare->folder, path);
    char *slash = strrchr(whole, '/');
    *slash = '\0';
    bool ok = files_make_folder(whole, err);
    *slash = '/';
    if (ok) {
        prepare->fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0700);
        ok = prepare->fd >= 0 || error_errno(err, INTERNAL, "cannot write %s", whole);
    }
    prepare->size = 0;
    crypto_hash_sha256_init(&prepare->hash);
    free(whole);
    return ok;
}

static bool file_close(struct prepare *prepare, const char *path, const char *sha256,
                       struct error *err)
{
    uint8_t hash[crypto_hash_sha256_BYTES];
    char text[2 * sizeof(hash) + 1];
    crypto_hash_sha256_final(&prepare->hash, hash);
    sodium_bin2hex(text, sizeof(text), hash, sizeof(hash));
    close(prepare->fd);
    prepare->fd = -1;
    return strcmp(text, sha256) == 0 ||
           fail(err, DATA_LOSS, "%s came with another SHA-256 than %s", path, sha256);
}

static bool file_write(struct prepare *prepare, const struct agent_fetch_response *piece,
                       struct error *err)
{
    const char *at = piece->data;
    for (size_t left = piece->data_size; left;) {
        ssize_t n = write(prepare->fd, at, left);
        if (n < 0)
            return error_errno(err, INTERNAL, "cannot write a file of the job");
        at += n;
        left -= (size_t)n;
    }
    crypto_hash_sha256_update(&prepare->hash, piece->data, piece->data_size);
    prepare->size += (int64_t)piece->data_size;
    return true;
}

/* One piece of a file, or its end. */
static enum prepare_result fetch_piece(struct prepare *prepare, struct link *link,
                                       const struct agent_task_ref *task, struct error *err)
{
    const char *path = json_object_iter_key(prepare->file);
    const char *sha256 = json_string_value(json_object_iter_value(prepare->file));
    struct agent_fetch_response piece;
    if (prepare->fd < 0 && !file_open(prepare, path, err))
        return PREPARE_FAILED;
    struct arena *arena = arena_new();
    enum prepare_result result = PREPARE_MORE;
    failpoint("agent.fetch");
    if (!link_fetch(link, task, sha256, prepare->size, arena, &piece, err))
        result = call_failed(err);
    else if (!file_write(prepare, &piece, err))
        result = PREPARE_FAILED;
    else if (piece.data_size < LIMIT_SHIP_BYTES) { /* the last */
        if (!file_close(prepare, path, sha256, err))
            result = PREPARE_FAILED;
        prepare->file = json_object_iter_next(program_files(prepare), prepare->file);
    }
    arena_free(arena);
    return result;
}

static enum prepare_result fetch(struct prepare *prepare, struct link *link,
                                 const struct agent_task_ref *task, struct error *err)
{
    if (!prepare->begun)
        prepare->file = json_object_iter(program_files(prepare));
    prepare->begun = true;
    enum prepare_result result = PREPARE_MORE;
    for (int i = 0; prepare->file && i < PIECES_A_TURN && result == PREPARE_MORE; i++)
        result = fetch_piece(prepare, link, task, err);
    return prepare->file || result != PREPARE_MORE ? result : PREPARE_DONE;
}

/* --- the other tasks --- */

static json_t *address_json(const struct agent_task_address *address)
{
    return json_pack("{s:s, s:i, s:s}", "role", address->role, "index", address->index,
                     "address", address->address);
}

static int64_t tasks_of(const json_t *start)
{
    const json_t *program = json_object_get(start, "program");
    return files_int(program ? program : start, "tasks");
}

/* Whether it must know where others are, or by what they know each other. */
static bool meets(const json_t *start)
{
    return tasks_of(start) > 1 || files_int(start, "idle_seconds");
}

bool prepare_wanted(const json_t *start)
{
    return json_object_get(start, "program") || meets(start);
}

/* The certificate and its key, for the task's user alone; once. */
static bool keep_certificate(const struct prepare *prepare,
                             const struct agent_meet_response *met, struct error *err)
{
    if (!*met->certificate)
        return true;
    char *path = alloc_printf("%s/" PREPARE_CERTIFICATE, prepare->folder);
    char *text = alloc_printf("%s%s", met->certificate, met->key);
    unlink(path); /* of an agent that fell in between */
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
    size_t size = strlen(text);
    bool ok = (fd >= 0 && write(fd, text, size) == (ssize_t)size) ||
              error_errno(err, INTERNAL, "cannot write %s", path);
    if (fd >= 0)
        close(fd);
    sodium_memzero(text, size);
    free(text);
    free(path);
    if (ok)
        json_object_set_new(prepare->start, "certificate", json_string(PREPARE_CERTIFICATE));
    return ok;
}

static enum prepare_result meet(struct prepare *prepare, struct link *link,
                                const struct agent_task_ref *task, const char *host,
                                struct error *err)
{
    int port = (int)files_int(prepare->start, "port");
    struct arena *arena = arena_new();
    struct agent_task_address alone = {task->role, task->index,
                                       arena_printf(arena, "127.0.0.1:%d", port)};
    struct agent_meet_response met = {.cluster = &alone, .cluster_count = 1, .certificate = ""};
    enum prepare_result result = PREPARE_DONE;
    if (meets(prepare->start) && !link_meet(link, task, host, port, arena, &met, err)) {
        result = call_failed(err);
    } else if (!met.cluster_count) {
        prepare->wait_ms = prepare->wait_ms ? prepare->wait_ms * 2 : WAIT_FIRST_MS;
        if (prepare->wait_ms > WAIT_MAX_MS)
            prepare->wait_ms = WAIT_MAX_MS;
        prepare->again_us = clock_monotonic_us() + (uint64_t)prepare->wait_ms * 1000;
        result = PREPARE_LATER;
    } else if (!keep_certificate(prepare, &met, err)) {
        result = PREPARE_FAILED;
    } else {
        json_t *cluster = json_array();
        for (int i = 0; i < met.cluster_count; i++)
            json_array_append_new(cluster, address_json(&met.cluster[i]));
        json_object_set_new(prepare->start, "cluster", cluster);
    }
    arena_free(arena);
    return result;
}

enum prepare_result prepare_go_on(struct prepare *prepare, struct link *link,
                                  const struct agent_task_ref *task, const char *host,
                                  struct error *err)
{
    if (clock_monotonic_us() < prepare->again_us)
        return PREPARE_LATER;
    enum prepare_result result = fetch(prepare, link, task, err);
    return result == PREPARE_DONE ? meet(prepare, link, task, host, err) : result;
}
