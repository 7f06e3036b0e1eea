/* prepare.c - fetches files by their hashes, and meets the other tasks. */

#include <fcntl.h>
#include <sodium.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"
#include "proto/agent_pb.h"
#include "scheduler/agent/bring.h"
#include "scheduler/agent/fetch.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/folders.h"
#include "scheduler/agent/link.h"
#include "scheduler/agent/prepare.h"
#include "scheduler/agent/program.h"

#define PIECES_A_TURN 8
#define WAIT_FIRST_MS 5
#define WAIT_MAX_MS 250
#define SAY_FIRST_US 2000000 /* what is here by then is not worth a word */
#define SAY_AGAIN_US 5000000

struct prepare {
    char *folder;
    json_t *start; /* borrowed */
    void *file;    /* jansson's iterator over the files: the one that is fetched */
    bool begun;    /* the iterator has been set */
    struct fetch *fetch;
    struct bring *bring; /* NULL: the server's folder is seen here */
    int wait_ms;
    uint64_t again_us;
    uint64_t say_us; /* when how far it is will be told next; 0: it has not begun */
};

struct prepare *prepare_new(const char *folder, json_t *start, struct datasets *datasets)
{
    struct prepare *prepare = alloc_bytes(sizeof(*prepare));
    prepare->folder = alloc_text(folder);
    prepare->start = start;
    prepare->fetch = fetch_new();
    if (folders_are_own(start))
        prepare->bring = bring_new(folder, start, datasets);
    return prepare;
}

void prepare_free(struct prepare *prepare)
{
    if (!prepare)
        return;
    fetch_free(prepare->fetch);
    bring_free(prepare->bring);
    free(prepare->folder);
    free(prepare);
}

uint64_t prepare_again_us(const struct prepare *prepare)
{
    return prepare->again_us;
}

/* --- files --- */

static json_t *program_files(const struct prepare *prepare)
{
    return json_object_get(json_object_get(prepare->start, "program"), "files");
}

/* One piece of a file that the job brought. */
static enum fetch_result fetch_program_file(struct prepare *prepare, struct link *link,
                                            const struct agent_task_ref *task,
                                            struct error *err)
{
    const char *path = json_object_iter_key(prepare->file);
    const char *sha256 = json_string_value(json_object_iter_value(prepare->file));
    if (!path_is_below(path)) {
        fail(err, INVALID, "'%.100s' cannot name a file of a job", path);
        return FETCH_FAILED;
    }
    char *whole = alloc_printf("%s/" PROGRAM_WORK "/%s", prepare->folder, path);
    const struct fetch_file file = {
        .what = {.kind = AGENT_FETCH_FILE, .sha256 = sha256, .path = ""},
        .path = whole,
        .sha256 = sha256,
        .size = -1,
        .executable = true};
    enum fetch_result result = fetch_piece(prepare->fetch, &file, link, task, err);
    free(whole);
    return result;
}

static enum fetch_result fetch_program(struct prepare *prepare, struct link *link,
                                       const struct agent_task_ref *task, struct error *err)
{
    if (!prepare->begun)
        prepare->file = json_object_iter(program_files(prepare));
    prepare->begun = true;
    if (!prepare->file)
        return FETCH_DONE;
    enum fetch_result result = fetch_program_file(prepare, link, task, err);
    if (result != FETCH_DONE)
        return result;
    prepare->file = json_object_iter_next(program_files(prepare), prepare->file);
    return FETCH_MORE;
}

/* Who waits reads in the task's stderr for what. */
static void say(struct prepare *prepare)
{
    char text[300];
    uint64_t now_us = clock_monotonic_us();
    if (!prepare->say_us)
        prepare->say_us = now_us + SAY_FIRST_US;
    if (now_us < prepare->say_us)
        return;
    prepare->say_us = now_us + SAY_AGAIN_US;
    char *path = alloc_printf("%s/stderr.log", prepare->folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0) {
        dprintf(fd, "trainyard: %s\n", bring_text(prepare->bring, text, sizeof(text)));
        close(fd);
    }
    free(path);
}

/* What the job brought, then what of the server's folder is not seen here. */
static enum fetch_result fetch(struct prepare *prepare, struct link *link,
                               const struct agent_task_ref *task, struct error *err)
{
    enum fetch_result result = FETCH_MORE;
    for (int i = 0; i < PIECES_A_TURN && result == FETCH_MORE; i++) {
        result = fetch_program(prepare, link, task, err);
        if (result == FETCH_DONE && prepare->bring)
            result = bring_go_on(prepare->bring, link, task, err);
    }
    if (prepare->bring && (result == FETCH_MORE || result == FETCH_LATER))
        say(prepare);
    return result;
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
    return json_object_get(start, "program") || meets(start) || folders_are_own(start);
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

/* Whom it waits for is asked ever less often. */
static enum prepare_result later(struct prepare *prepare)
{
    prepare->wait_ms = prepare->wait_ms ? prepare->wait_ms * 2 : WAIT_FIRST_MS;
    if (prepare->wait_ms > WAIT_MAX_MS)
        prepare->wait_ms = WAIT_MAX_MS;
    prepare->again_us = clock_monotonic_us() + (uint64_t)prepare->wait_ms * 1000;
    return PREPARE_LATER;
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
        result = fetch_call_failed(err) == FETCH_ABSENT ? PREPARE_ABSENT : PREPARE_FAILED;
    } else if (!met.cluster_count) {
        result = later(prepare);
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
    switch (fetch(prepare, link, task, err)) {
    case FETCH_DONE:
        return meet(prepare, link, task, host, err);
    case FETCH_MORE:
        return PREPARE_MORE;
    case FETCH_LATER:
        return later(prepare);
    case FETCH_ABSENT:
        return PREPARE_ABSENT;
    case FETCH_FAILED:
        break;
    }
    return PREPARE_FAILED;
}
