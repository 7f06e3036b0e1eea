/* link.c - calls to the server, and the thread that listens to it. */

#include <pthread.h>
#include <time.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/mailbox.h"
#include "base/str.h"
#include "proto/agent_certify_pb.h"
#include "proto/rpc.h"
#include "scheduler/agent/link.h"

struct link {
    char *server;
    struct rpc_client
        *client;             /* NULL: not yet; changed by the agent's thread, under the lock */
    struct mailbox *mailbox; /* the agent's */
    pthread_t thread;

    pthread_mutex_t lock; /* guards: all below */
    pthread_cond_t changed;
    struct rpc_client *in_use;  /* by the poll that is under way; NULL: none */
    struct rpc_client *retired; /* in use for the last time; NULL: none */
    bool stopping;
    bool polling; /* a poll or its mail is under way */
    int64_t node_id;
    int64_t node_epoch; /* 0: no session */
    char *node_key;
    int64_t commands_done;
    struct timespec not_before; /* of the next poll */
};

/* As much as a message may grow into. */
static struct arena *response_arena(size_t size)
{
    return arena_new_limited(size * LIMIT_MESSAGE_EXPANSION + LIMIT_MESSAGE_EXPANSION_BASE);
}

/* --- the long poll --- */

static struct link_mail *poll_once(struct rpc_client *client, const struct str *request,
                                   int64_t epoch)
{
    struct link_mail *mail = alloc_bytes(sizeof(*mail));
    struct str response = {0};
    mail->node_epoch = epoch;
    mail->ok = rpc_client_call(client, AGENT_PATH_SYNC, request, &response,
                               LIMIT_LONG_POLL_MS + LIMIT_RPC_MS, &mail->error);
    mail->arena = response_arena(response.size);
    mail->ok = mail->ok && agent_sync_response_unpack(response.data, response.size, mail->arena,
                                                      &mail->response, &mail->error);
    str_release(&response);
    return mail;
}

static void mail_free(struct link_mail *mail)
{
    arena_free(mail->arena);
    free(mail);
}

/* Waits until a poll is due and packs its request; NULL when stopping, else by whom to ask. */
static struct rpc_client *poll_wait(struct link *link, struct str *request, int64_t *epoch)
{
    pthread_mutex_lock(&link->lock);
    for (;;) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        bool early =
            now.tv_sec < link->not_before.tv_sec ||
            (now.tv_sec == link->not_before.tv_sec && now.tv_nsec < link->not_before.tv_nsec);
        if (link->stopping || (link->node_epoch && !link->polling && !early))
            break;
        if (link->node_epoch && !link->polling)
            pthread_cond_timedwait(&link->changed, &link->lock, &link->not_before);
        else
            pthread_cond_wait(&link->changed, &link->lock);
    }
    bool go_on = !link->stopping;
    const struct agent_sync_request sync = {.node_id = link->node_id,
                                            .node_epoch = link->node_epoch,
                                            .node_key = link->node_key,
                                            .commands_done = link->commands_done};
    str_clear(request);
    agent_sync_request_pack(&sync, request);
    *epoch = link->node_epoch;
    link->polling = true;
    struct rpc_client *client = link->in_use = go_on ? link->client : NULL;
    pthread_mutex_unlock(&link->lock);
    return client;
}

static void poll_done(struct link *link)
{
    pthread_mutex_lock(&link->lock);
    struct rpc_client *retired = link->retired;
    link->in_use = link->retired = NULL;
    pthread_mutex_unlock(&link->lock);
    rpc_client_free(retired);
}

static void *link_main(void *argument)
{
    struct link *link = argument;
    struct str request = {0};
    int64_t epoch;
    struct rpc_client *client;
    while ((client = poll_wait(link, &request, &epoch))) {
        struct link_mail *mail = poll_once(client, &request, epoch);
        poll_done(link);
        if (!mailbox_post(link->mailbox, mail)) { /* the agent is stopping */
            mail_free(mail);
            break;
        }
    }
    str_release(&request);
    return NULL;
}

void link_continue(struct link *link, struct link_mail *mail, int64_t commands_done,
                   int wait_ms)
{
    mail_free(mail);
    pthread_mutex_lock(&link->lock);
    link->polling = false;
    link->commands_done = commands_done;
    clock_gettime(CLOCK_MONOTONIC, &link->not_before);
    link->not_before.tv_sec += wait_ms / 1000;
    link->not_before.tv_nsec += (long)(wait_ms % 1000) * 1000000;
    if (link->not_before.tv_nsec >= 1000000000) {
        link->not_before.tv_nsec -= 1000000000;
        link->not_before.tv_sec++;
    }
    pthread_cond_signal(&link->changed);
    pthread_mutex_unlock(&link->lock);
}

/* --- life --- */

bool link_connect(struct link *link, const struct rpc_tls *tls, struct error *err)
{
    const struct rpc_client_options options = {
        .address = link->server, .message_bytes_max = LIMIT_CONTROL_MESSAGE_BYTES, .tls = tls};
    struct rpc_client *client = rpc_client_new(&options, err);
    if (!client)
        return false;
    pthread_mutex_lock(&link->lock);
    struct rpc_client *old = link->client;
    link->client = client;
    if (old && old == link->in_use) {
        link->retired = old;
        old = NULL;
    }
    if (link->stopping)
        rpc_client_cancel(client);
    pthread_mutex_unlock(&link->lock);
    rpc_client_free(old);
    return true;
}

struct link *link_new(const char *server, struct mailbox *mailbox)
{
    struct link *link = alloc_bytes(sizeof(*link));
    link->server = alloc_text(server);
    link->mailbox = mailbox;
    link->node_key = alloc_text("");
    pthread_mutex_init(&link->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&link->changed, &attr);
    pthread_condattr_destroy(&attr);
    int failed = pthread_create(&link->thread, NULL, link_main, link);
    assert(!failed);
    pthread_setname_np(link->thread, "agent-link");
    return link;
}

void link_cancel(struct link *link)
{
    pthread_mutex_lock(&link->lock);
    link->stopping = true;
    pthread_cond_signal(&link->changed);
    if (link->client)
        rpc_client_cancel(link->client);
    if (link->retired)
        rpc_client_cancel(link->retired);
    pthread_mutex_unlock(&link->lock);
}

void link_free(struct link *link)
{
    if (!link)
        return;
    pthread_join(link->thread, NULL);
    rpc_client_free(link->client);
    pthread_cond_destroy(&link->changed);
    pthread_mutex_destroy(&link->lock);
    free(link->node_key);
    free(link->server);
    free(link);
}

/* --- calls of the agent's thread --- */

bool link_certify(struct link *link, const struct agent_certify_request *request,
                  struct arena *arena, struct agent_certify_response *response,
                  struct error *err)
{
    struct str bytes = {0}, answer = {0};
    agent_certify_request_pack(request, &bytes);
    bool ok =
        rpc_client_call(link->client, AGENT_PATH_CERTIFY, &bytes, &answer, LIMIT_RPC_MS, err) &&
        agent_certify_response_unpack(answer.data, answer.size, arena, response, err);
    str_release(&bytes);
    str_release(&answer);
    return ok;
}

bool link_join(struct link *link, const struct agent_join_request *request, struct arena *arena,
               struct agent_join_response *response, struct error *err)
{
    struct str bytes = {0}, answer = {0};
    agent_join_request_pack(request, &bytes);
    bool ok =
        rpc_client_call(link->client, AGENT_PATH_JOIN, &bytes, &answer, LIMIT_RPC_MS, err) &&
        agent_join_response_unpack(answer.data, answer.size, arena, response, err);
    str_release(&bytes);
    str_release(&answer);
    if (!ok)
        return false;
    if (response->node_epoch <= 0)
        return fail(err, INTERNAL, "the server gave the session no epoch");
    pthread_mutex_lock(&link->lock);
    free(link->node_key);
    link->node_key = alloc_text(response->node_key);
    link->node_id = response->node_id;
    link->node_epoch = response->node_epoch;
    link->commands_done = 0;
    link->not_before = (struct timespec){0};
    pthread_cond_signal(&link->changed);
    pthread_mutex_unlock(&link->lock);
    return true;
}

void link_leave(struct link *link)
{
    pthread_mutex_lock(&link->lock);
    link->node_epoch = 0;
    pthread_mutex_unlock(&link->lock);
}

int64_t link_epoch(struct link *link)
{
    pthread_mutex_lock(&link->lock);
    int64_t epoch = link->node_epoch;
    pthread_mutex_unlock(&link->lock);
    return epoch;
}

/* Only the agent's thread changes the session, so it may read it without the lock. */
bool link_report(struct link *link, const struct agent_task_report *reports, int reports_count,
                 int64_t commands_done, struct arena *arena,
                 struct agent_sync_response *response, struct error *err)
{
    const struct agent_sync_request sync = {.node_id = link->node_id,
                                            .node_epoch = link->node_epoch,
                                            .node_key = link->node_key,
                                            .reports = reports,
                                            .reports_count = reports_count,
                                            .commands_done = commands_done,
                                            .asked_us = (int64_t)clock_monotonic_us()};
    struct str bytes = {0}, answer = {0};
    agent_sync_request_pack(&sync, &bytes);
    bool ok =
        rpc_client_call(link->client, AGENT_PATH_SYNC, &bytes, &answer, LIMIT_RPC_MS, err) &&
        agent_sync_response_unpack(answer.data, answer.size, arena, response, err);
    str_release(&bytes);
    str_release(&answer);
    return ok;
}

bool link_is_final(enum error_code code)
{
    return code == INVALID || code == DENIED || code == NOT_FOUND || code == OUT_OF_RANGE ||
           code == DATA_LOSS || code == UNIMPLEMENTED;
}

static bool ship_call(struct link *link, struct agent_ship_request *ship, int64_t *cursor,
                      struct error *err)
{
    struct str bytes = {0}, answer = {0};
    struct agent_ship_response response;
    ship->node_id = link->node_id;
    ship->node_epoch = link->node_epoch;
    ship->node_key = link->node_key;
    agent_ship_request_pack(ship, &bytes);
    bool ok =
        rpc_client_call(link->client, AGENT_PATH_SHIP, &bytes, &answer, LIMIT_RPC_MS, err);
    if (ok) {
        struct arena *arena = response_arena(answer.size);
        ok = agent_ship_response_unpack(answer.data, answer.size, arena, &response, err);
        arena_free(arena);
    }
    if (ok)
        *cursor = response.offset;
    str_release(&bytes);
    str_release(&answer);
    return ok;
}

bool link_ship(struct link *link, const struct agent_task_ref *task, const char *file,
               int64_t offset, const void *data, size_t size, bool last, int64_t *cursor,
               struct error *err)
{
    struct agent_ship_request ship = {.task = *task,
                                      .file = file,
                                      .offset = offset,
                                      .data = data,
                                      .data_size = size,
                                      .last = last};
    return ship_call(link, &ship, cursor, err);
}

bool link_remove(struct link *link, const struct agent_task_ref *task, const char *file,
                 struct error *err)
{
    struct agent_ship_request ship = {.task = *task, .file = file, .removed = true};
    int64_t cursor;
    return ship_call(link, &ship, &cursor, err);
}

bool link_fetch(struct link *link, const struct agent_task_ref *task,
                const struct agent_fetch_what *what, int64_t offset, struct arena *arena,
                struct agent_fetch_response *piece, struct error *err)
{
    const struct agent_fetch_request fetch = {.node_id = link->node_id,
                                              .node_epoch = link->node_epoch,
                                              .node_key = link->node_key,
                                              .task = *task,
                                              .what = *what,
                                              .offset = offset};
    struct str bytes = {0}, answer = {0};
    agent_fetch_request_pack(&fetch, &bytes);
    bool ok =
        rpc_client_call(link->client, AGENT_PATH_FETCH, &bytes, &answer, LIMIT_RPC_MS, err) &&
        agent_fetch_response_unpack(answer.data, answer.size, arena, piece, err);
    str_release(&bytes);
    str_release(&answer);
    return ok;
}

bool link_meet(struct link *link, const struct agent_task_ref *task, const char *host, int port,
               struct arena *arena, struct agent_meet_response *met, struct error *err)
{
    const struct agent_meet_request meet = {.node_id = link->node_id,
                                            .node_epoch = link->node_epoch,
                                            .node_key = link->node_key,
                                            .task = *task,
                                            .host = host,
                                            .port = port};
    struct str bytes = {0}, answer = {0};
    agent_meet_request_pack(&meet, &bytes);
    bool ok =
        rpc_client_call(link->client, AGENT_PATH_MEET, &bytes, &answer, LIMIT_RPC_MS, err) &&
        agent_meet_response_unpack(answer.data, answer.size, arena, met, err);
    str_release(&bytes);
    str_release(&answer);
    return ok;
}
