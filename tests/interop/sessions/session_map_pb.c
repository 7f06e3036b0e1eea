/* session_map_pb.c - names of recorded sessions and what they are called in this run. */

#include <ctype.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "proto/message.h"
#include "tensorflow/master.pb-c.h"
#include "tests/interop/sessions/sessions.h"

static const char recorded_folder[] = "/tmp/tf-session";

/* Of the same length, so that they may be exchanged in serialized messages. */
void session_map_text(const struct session_map *map, const void *bytes, size_t size,
                      struct str *out)
{
    size_t at = out->size;
    str_add_bytes(out, bytes, size);
    for (; at + SESSION_FOLDER_BYTES <= out->size; at++)
        if (!memcmp(out->data + at, recorded_folder, SESSION_FOLDER_BYTES))
            memcpy(out->data + at, map->folder, SESSION_FOLDER_BYTES);
    for (int i = 0; i < map->sessions_count; i++)
        for (char *found = out->data;
             (found = memmem(found, out->size - (size_t)(found - out->data),
                             map->sessions[i].recorded, 16));)
            memcpy(found, map->sessions[i].ours, 16);
}

/* Field 1 of all requests but CreateSession and Reset. */
void session_map_handle(const Call *call, char handle[17])
{
    const char *bytes = (const char *)call->request.data;
    handle[0] = '\0';
    if (call->request.len >= 18 && bytes[0] == (1 << 3 | 2) && bytes[1] == 16)
        snprintf(handle, 17, "%.16s", bytes + 2);
}

void session_map_folders(const struct session_map *map, const struct str *request)
{
    const char *at = request->data, *end = request->data + request->size;
    while (at && (at = memmem(at, (size_t)(end - at), map->folder, SESSION_FOLDER_BYTES))) {
        char path[300];
        size_t size = 0;
        for (; at < end && size + 1 < sizeof(path) && (isalnum(*at) || strchr("/_.-", *at));
             at++) {
            path[size] = '\0';
            if (size && !memcmp(at, map->folder, SESSION_FOLDER_BYTES))
                break; /* another path follows at once */
            if (*at == '/' && size > SESSION_FOLDER_BYTES)
                (void)mkdir(path, 0700);
            path[size++] = *at;
        }
    }
}

static int64_t number_of(const struct session_map *map, const char *session, bool callable,
                         int64_t recorded)
{
    for (int i = map->numbers_count - 1; i >= 0; i--) {
        const struct session_numbers *one = &map->numbers[i];
        if (one->callable == callable && one->recorded == recorded &&
            !strncmp(one->session, session, 16))
            return one->ours;
    }
    return recorded;
}

/* Numbers have no fixed length: the request is taken apart. */
static bool map_numbers(const struct session_map *map, const Call *call, struct arena *arena,
                        struct str *out, struct error *err)
{
    const char *method = session_calls_method(call);
    const void *bytes = call->request.data;
    size_t size = call->request.len;
    char number[24];
    if (!strcmp(method, "RunStep")) {
        Tensorflow__RunStepRequest *step =
            message_unpack(&tensorflow__run_step_request__descriptor, bytes, size, arena, err);
        if (!step || !*step->partial_run_handle)
            return step;
        snprintf(number, sizeof(number), "%lld",
                 (long long)number_of(map, step->session_handle, false,
                                      strtoll(step->partial_run_handle, NULL, 10)));
        step->partial_run_handle = number;
        message_pack(&step->base, out);
    } else if (!strcmp(method, "RunCallable")) {
        Tensorflow__RunCallableRequest *run = message_unpack(
            &tensorflow__run_callable_request__descriptor, bytes, size, arena, err);
        if (!run)
            return false;
        run->handle = number_of(map, run->session_handle, true, run->handle);
        message_pack(&run->base, out);
    } else if (!strcmp(method, "ReleaseCallable")) {
        Tensorflow__ReleaseCallableRequest *release = message_unpack(
            &tensorflow__release_callable_request__descriptor, bytes, size, arena, err);
        if (!release)
            return false;
        release->handle = number_of(map, release->session_handle, true, release->handle);
        message_pack(&release->base, out);
    }
    return true;
}

bool session_map_request(const struct session_map *map, const Call *call, struct str *out,
                         struct error *err)
{
    struct arena *arena = arena_new();
    struct str numbered = {0};
    bool ok = map_numbers(map, call, arena, &numbered, err);
    if (ok && numbered.size)
        session_map_text(map, numbered.data, numbered.size, out);
    else if (ok)
        session_map_text(map, call->request.data, call->request.len, out);
    str_release(&numbered);
    arena_free(arena);
    return ok;
}

static void learn_number(struct session_map *map, const char *session, bool callable,
                         int64_t recorded, int64_t ours)
{
    map->numbers = alloc_grow(map->numbers, map->numbers_count, &map->numbers_capacity,
                              sizeof(*map->numbers));
    struct session_numbers *one = &map->numbers[map->numbers_count++];
    *one = (struct session_numbers){.callable = callable, .recorded = recorded, .ours = ours};
    snprintf(one->session, sizeof(one->session), "%s", session);
}

static bool learn_session(struct session_map *map, const void *recorded, size_t recorded_size,
                          const struct str *ours, struct arena *arena, struct error *err)
{
    const Tensorflow__CreateSessionResponse *was = message_unpack(
        &tensorflow__create_session_response__descriptor, recorded, recorded_size, arena, err);
    const Tensorflow__CreateSessionResponse *is = message_unpack(
        &tensorflow__create_session_response__descriptor, ours->data, ours->size, arena, err);
    if (!was || !is)
        return false;
    if (strlen(was->session_handle) != 16 || strlen(is->session_handle) != 16)
        return fail(err, DATA_LOSS, "a handle that has not 16 digits: %s", is->session_handle);
    map->sessions = alloc_grow(map->sessions, map->sessions_count, &map->sessions_capacity,
                               sizeof(*map->sessions));
    struct session_names *names = &map->sessions[map->sessions_count++];
    snprintf(names->recorded, sizeof(names->recorded), "%s", was->session_handle);
    snprintf(names->ours, sizeof(names->ours), "%s", is->session_handle);
    return true;
}

bool session_map_learn(struct session_map *map, const Call *call, const struct str *response,
                       struct error *err)
{
    const char *method = session_calls_method(call);
    const void *bytes = call->response.data;
    size_t size = call->response.len;
    struct arena *arena = arena_new();
    bool ok = true;
    if (!strcmp(method, "CreateSession")) {
        ok = learn_session(map, bytes, size, response, arena, err);
    } else if (!strcmp(method, "PartialRunSetup")) {
        const ProtobufCMessageDescriptor *of =
            &tensorflow__partial_run_setup_response__descriptor;
        const Tensorflow__PartialRunSetupRequest *asked =
            message_unpack(&tensorflow__partial_run_setup_request__descriptor,
                           call->request.data, call->request.len, arena, err);
        const Tensorflow__PartialRunSetupResponse
            *was = asked ? message_unpack(of, bytes, size, arena, err) : NULL,
            *is = was ? message_unpack(of, response->data, response->size, arena, err) : NULL;
        ok = is;
        if (ok)
            learn_number(map, asked->session_handle, false,
                         strtoll(was->partial_run_handle, NULL, 10),
                         strtoll(is->partial_run_handle, NULL, 10));
    } else if (!strcmp(method, "MakeCallable")) {
        const ProtobufCMessageDescriptor *of = &tensorflow__make_callable_response__descriptor;
        const Tensorflow__MakeCallableRequest *asked =
            message_unpack(&tensorflow__make_callable_request__descriptor, call->request.data,
                           call->request.len, arena, err);
        const Tensorflow__MakeCallableResponse
            *was = asked ? message_unpack(of, bytes, size, arena, err) : NULL,
            *is = was ? message_unpack(of, response->data, response->size, arena, err) : NULL;
        ok = is;
        if (ok)
            learn_number(map, asked->session_handle, true, was->handle, is->handle);
    }
    arena_free(arena);
    return ok;
}
