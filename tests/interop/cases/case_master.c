/*
 * case_master.c - cases by TensorFlow's MasterService: servers of this process on loopback
 * ports, and a client that sends what is recorded as it is.
 */

#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"
#include "proto/message.h"
#include "proto/rpc.h"
#include "runtime/tensor_pb.h"
#include "tensorflow/master.pb-c.h"
#include "tests/interop/cases/cases.h"
#include "tests/interop/servers.h"

#define CALL_MS 60000

struct case_master {
    struct servers servers;
    struct rpc_client *client; /* of task 0 */
    uint64_t seed;
};

struct case_master *case_master_start(int tasks, const struct session_options *options,
                                      uint64_t seed, struct error *err)
{
    struct case_master *m = alloc_bytes(sizeof(*m));
    m->seed = seed;
    if (!servers_start(&m->servers, tasks, options, err))
        return NULL; /* the process ends */
    m->client =
        rpc_client_new(&(struct rpc_client_options){.address = m->servers.tasks[0].address,
                                                    .message_bytes_max = LIMIT_MESSAGE_BYTES},
                       err);
    return m->client ? m : NULL;
}

/* --- the client --- */

static bool call(struct case_master *m, const char *path, const ProtobufCMessage *request,
                 struct str *response, struct error *err)
{
    struct str bytes = {0};
    message_pack(request, &bytes);
    bool ok = rpc_client_call(m->client, path, &bytes, response, CALL_MS, err);
    str_release(&bytes);
    return ok;
}

#define PATH(name) "/tensorflow.MasterService/" name

/* Of several tasks the nodes are scattered; a graph that is refused is sent as it is. */
static const struct str *scattered(const struct case_master *m, const void *graph, size_t size,
                                   struct str *room)
{
    if (m->servers.count == 1 ||
        !case_scatter(graph, size, m->servers.names, m->servers.count, m->seed, room)) {
        str_clear(room);
        str_add_bytes(room, graph, size);
    }
    return room;
}

bool case_master_create(struct case_master *m, const void *graph, size_t size,
                        struct case_session *session, struct error *err)
{
    Tensorflow__CreateSessionRequest request = TENSORFLOW__CREATE_SESSION_REQUEST__INIT;
    Tensorflow__ConfigProto config = TENSORFLOW__CONFIG_PROTO__INIT;
    Tensorflow__ConfigProto__Experimental experimental =
        TENSORFLOW__CONFIG_PROTO__EXPERIMENTAL__INIT;
    struct str room = {0}, response = {0};
    scattered(m, graph, size, &room);
    request.graph_def = (ProtobufCBinaryData){room.size, (uint8_t *)room.data};
    request.config = &config;
    config.isolate_session_state = true;
    config.experimental = &experimental;
    struct arena *arena = arena_new();
    bool ok = call(m, PATH("CreateSession"), &request.base, &response, err);
    const Tensorflow__CreateSessionResponse *answer =
        ok ? message_unpack(&tensorflow__create_session_response__descriptor, response.data,
                            response.size, arena, err)
           : NULL;
    if (answer)
        snprintf(session->handle, sizeof(session->handle), "%s", answer->session_handle);
    session->version = answer ? answer->graph_version : 0;
    arena_free(arena);
    str_release(&room);
    str_release(&response);
    return answer;
}

bool case_master_extend(struct case_master *m, struct case_session *session, const void *graph,
                        size_t size, struct error *err)
{
    Tensorflow__ExtendSessionRequest request = TENSORFLOW__EXTEND_SESSION_REQUEST__INIT;
    struct str response = {0};
    request.session_handle = session->handle;
    request.graph_def = (ProtobufCBinaryData){size, (uint8_t *)(uintptr_t)graph};
    request.current_graph_version = session->version;
    struct arena *arena = arena_new();
    bool ok = call(m, PATH("ExtendSession"), &request.base, &response, err);
    const Tensorflow__ExtendSessionResponse *answer =
        ok ? message_unpack(&tensorflow__extend_session_response__descriptor, response.data,
                            response.size, arena, err)
           : NULL;
    if (answer)
        session->version = answer->new_graph_version;
    arena_free(arena);
    str_release(&response);
    return answer;
}

void case_master_close(struct case_master *m, struct case_session *session)
{
    Tensorflow__CloseSessionRequest request = TENSORFLOW__CLOSE_SESSION_REQUEST__INIT;
    struct str response = {0};
    struct error ignored;
    request.session_handle = session->handle;
    (void)!call(m, PATH("CloseSession"), &request.base, &response, &ignored);
    str_release(&response);
}

static bool take_answer(const struct session_run *run, const struct str *response,
                        struct arena *arena, struct tensor *fetched, struct error *err)
{
    const Tensorflow__RunStepResponse *answer = message_unpack(
        &tensorflow__run_step_response__descriptor, response->data, response->size, arena, err);
    if (!answer)
        return false;
    if (answer->status_code)
        return fail(err, (enum error_code)answer->status_code, "%s",
                    answer->status_error_message);
    if (answer->n_tensor != (size_t)run->fetches_count)
        return fail(err, INTERNAL, "%zu tensors came, %d were fetched", answer->n_tensor,
                    run->fetches_count);
    for (int i = 0; i < run->fetches_count; i++)
        if (!tensor_unpack(&fetched[i], answer->tensor[i]->tensor, err))
            return false;
    return true;
}

bool case_master_run(struct case_master *m, struct case_session *session,
                     const struct session_run *run, struct tensor *fetched, struct error *err)
{
    Tensorflow__RunStepRequest request = TENSORFLOW__RUN_STEP_REQUEST__INIT;
    struct arena *arena = arena_new();
    struct str response = {0};
    request.session_handle = session->handle;
    request.n_feed = (size_t)run->feeds_count;
    request.feed = arena_array(arena, request.n_feed, sizeof(*request.feed));
    for (int i = 0; i < run->feeds_count; i++) {
        Tensorflow__NamedTensorProto *feed = arena_alloc(arena, sizeof(*feed));
        tensorflow__named_tensor_proto__init(feed);
        feed->name = (char *)(uintptr_t)run->feeds[i];
        feed->tensor = tensor_pack(&run->feed_values[i], true, arena);
        request.feed[i] = feed;
    }
    request.n_fetch = (size_t)run->fetches_count;
    request.fetch = (char **)(uintptr_t)run->fetches;
    request.n_target = (size_t)run->targets_count;
    request.target = (char **)(uintptr_t)run->targets;
    bool ok = call(m, PATH("RunStep"), &request.base, &response, err) &&
              take_answer(run, &response, arena, fetched, err);
    str_release(&response);
    arena_free(arena);
    return ok;
}
