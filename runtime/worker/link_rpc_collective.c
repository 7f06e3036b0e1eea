/* link_rpc_collective.c - what collectives ask a worker of another process. */

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/worker/remote.h"
#include "runtime/worker/wire_collective.h"

#define METHOD(name) "/tensorflow.WorkerService/" name

static bool remote_step_sequence(struct worker_link *link, int64_t graph_key, int64_t *step_id,
                                 struct error *err)
{
    struct str request = {0}, response = {0};
    wire_write_get_steps(graph_key, &request);
    bool ok = rpc_client_call(((struct remote *)link)->client, METHOD("GetStepSequence"),
                              &request, &response, LIMIT_WORKER_CALL_MS, err) &&
              wire_read_steps(response.data, response.size, graph_key, step_id, err);
    str_release(&request);
    str_release(&response);
    return ok;
}

/* --- calls whose answer takes as long as it takes --- */

static void start(struct worker_link *link, const char *path, struct str *request,
                  rpc_done *done, struct link_asked *asked)
{
    rpc_client_start(((struct remote *)link)->client, path, request, done, asked);
    str_release(request);
}

static void remote_abandon(struct worker_link *link, struct link_asked *asked)
{
    rpc_client_cancel_started(((struct remote *)link)->client, asked);
}

static void group_told(void *arg, const struct str *response, const struct error *err)
{
    struct link_asked *asked = arg;
    struct arena *arena = arena_new();
    struct collective_group group;
    struct error bad;
    if (!err && !wire_read_group(response->data, response->size, arena, &group, &bad))
        err = &bad;
    if (err)
        asked->failed(asked, err);
    else
        asked->group(asked, &group);
    arena_free(arena);
}

static void remote_complete_group(struct worker_link *link, const struct collective_wish *wish,
                                  const struct device *device, struct link_asked *asked)
{
    const struct wire_member in = {*wish, *device};
    struct str request = {0};
    wire_write_complete_group(&in, &request);
    start(link, METHOD("CompleteGroup"), &request, group_told, asked);
}

static void source_told(void *arg, const struct str *response, const struct error *err)
{
    struct link_asked *asked = arg;
    struct error bad;
    int source = -1;
    if (!err && !wire_read_instance(response->data, response->size, &source, &bad))
        err = &bad;
    if (err)
        asked->failed(asked, err);
    else
        asked->source(asked, source);
}

static void remote_complete_instance(struct worker_link *link,
                                     const struct collective_wish *wish,
                                     const struct device *device, struct link_asked *asked)
{
    const struct wire_member in = {*wish, *device};
    struct str request = {0};
    wire_write_complete_instance(&in, &request);
    start(link, METHOD("CompleteInstance"), &request, source_told, asked);
}

static bool take_buffer(struct rpc_sink *sink, const void *bytes, size_t size,
                        struct error *err)
{
    struct link_asked *asked = (struct link_asked *)sink;
    return wire_read_buffer(bytes, size, asked->into, asked->size, err);
}

static void took_buffer(struct rpc_sink *sink, const struct error *err)
{
    struct link_asked *asked = (struct link_asked *)sink;
    if (err)
        asked->failed(asked, err);
    else
        asked->bytes(asked);
}

static void remote_receive_buffer(struct worker_link *link, const char *key,
                                  const struct device *from, const struct device *to,
                                  struct link_asked *asked)
{
    const struct wire_buffer in = {.step_id = asked->step_id,
                                   .key = key,
                                   .bytes = (int64_t)asked->size,
                                   .from = from->name,
                                   .to = to->name,
                                   .incarnation = from->incarnation,
                                   .request_id = remote_request_id((struct remote *)link)};
    struct str request = {0};
    wire_write_receive_buffer(&in, &request);
    asked->sink = (struct rpc_sink){take_buffer, took_buffer};
    rpc_client_start_into(((struct remote *)link)->client, METHOD("RecvBuf"), &request,
                          &asked->sink);
    str_release(&request);
}

const struct worker_link_collectives link_rpc_collective_calls = {
    .step_sequence = remote_step_sequence,
    .complete_group = remote_complete_group,
    .complete_instance = remote_complete_instance,
    .receive_buffer = remote_receive_buffer,
    .abandon = remote_abandon,
};
