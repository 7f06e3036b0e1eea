/* session_compare_pb.c - whether an answer says what TensorFlow's said. */

#include <ctype.h>
#include <stdlib.h>

#include "base/arena.h"
#include "proto/message.h"
#include "runtime/tensor_pb.h"
#include "tensorflow/master.pb-c.h"
#include "tests/interop/cases/cases.h"
#include "tests/interop/sessions/sessions.h"

#define RELATIVE 2e-3 /* trainings go apart a little with each step */
#define ABSOLUTE 1e-4

/* The first line that says something; "From TASK:" only says where. */
static const char *first_line(const char *text, size_t *size)
{
    while (!strncmp(text, "From /job:", 10) && strchr(text, '\n'))
        text = strchr(text, '\n') + 1;
    const char *why = strstr(text, "status error message=");
    *size = strcspn(text, "\n");
    if (why && (size_t)(why - text) < *size)
        *size = (size_t)(why - text);
    while (*size && text[*size - 1] == ' ')
        --*size;
    return text;
}

/* "'_9_batch/queue'": the number counts all objects of the process. */
static void drop_numbers(struct str *text)
{
    char *to = text->data;
    for (const char *from = text->data; from && *from;) {
        *to++ = *from++;
        if (from[-1] != '_' || !isdigit(*from))
            continue;
        const char *end = from + strspn(from, "0123456789");
        if (from - text->data >= 2 && from[-2] == '\'' && *end == '_')
            from = end;
    }
    if (to)
        *to = '\0';
}

static bool compare_errors(const struct session_map *map, int want_code, const char *want,
                           int got_code, const char *got, struct error *err)
{
    struct str mapped = {0}, ours = {0};
    size_t want_size, got_size;
    session_map_text(map, want, strlen(want), &mapped);
    str_add(&ours, got);
    drop_numbers(&mapped);
    drop_numbers(&ours);
    const char *want_line = first_line(str_text(&mapped), &want_size);
    const char *got_line = first_line(str_text(&ours), &got_size);
    bool ok = want_code == got_code || fail(err, DATA_LOSS, "%s (%.200s), not %s (%.200s)",
                                            error_code_name((enum error_code)got_code), got,
                                            error_code_name((enum error_code)want_code), want);
    /* Ours may say more, or less: file names, hints. */
    if (ok && !memmem(want_line, want_size, got_line, got_size) &&
        !memmem(got_line, got_size, want_line, want_size))
        ok = fail(err, DATA_LOSS, "says\n  %.*s\nnot\n  %.*s", (int)got_size, got_line,
                  (int)want_size, want_line);
    str_release(&mapped);
    str_release(&ours);
    return ok;
}

/* What is random in every run, or serialized with numbers that differ in their last bits. */
static bool is_comparable(const char *name)
{
    return !strstr(name, "random_shuffle_queue") && !strstr(name, "Summary");
}

static bool compare_tensor(const struct session_map *map, const Tensorflow__TensorProto *got,
                           const Tensorflow__TensorProto *want, const char *name,
                           struct error *err)
{
    struct str bytes = {0}, mapped = {0};
    struct tensor a = {0}, b = {0};
    const Expected how = {
        .relative = RELATIVE, .absolute = ABSOLUTE, .shape_only = !is_comparable(name)};
    bool exact = want->dtype == TENSORFLOW__DATA_TYPE__DT_INT64 ||
                 want->dtype == TENSORFLOW__DATA_TYPE__DT_INT32;
    const Expected same = {.shape_only = how.shape_only};
    message_pack(&want->base, &bytes);
    session_map_text(map, bytes.data, bytes.size, &mapped);
    bool ok = tensor_parse(&b, mapped.data, mapped.size, err) && tensor_unpack(&a, got, err) &&
              case_compare(&a, &b, exact ? &same : &how, err);
    if (!ok)
        (void)error_prefix(err, "%s ", name);
    tensor_release(&a);
    tensor_release(&b);
    str_release(&bytes);
    str_release(&mapped);
    return ok;
}

static const Tensorflow__TensorProto *find(const Tensorflow__RunStepResponse *in,
                                           const char *name)
{
    for (size_t i = 0; i < in->n_tensor; i++)
        if (!strcmp(in->tensor[i]->name, name))
            return in->tensor[i]->tensor;
    return NULL;
}

static bool compare_steps(const struct session_map *map, const Tensorflow__RunStepResponse *got,
                          const Tensorflow__RunStepResponse *want, bool values,
                          struct error *err)
{
    if (got->status_code || want->status_code)
        return compare_errors(map, want->status_code, want->status_error_message,
                              got->status_code, got->status_error_message, err);
    if (got->n_tensor != want->n_tensor)
        return fail(err, DATA_LOSS, "%zu tensors, not %zu", got->n_tensor, want->n_tensor);
    for (size_t i = 0; i < want->n_tensor; i++) {
        const char *name = want->tensor[i]->name;
        const Tensorflow__TensorProto *found = find(got, name);
        if (!found)
            return fail(err, DATA_LOSS, "has no %s", name);
        if (values && !compare_tensor(map, found, want->tensor[i]->tensor, name, err))
            return false;
    }
    return true;
}

static bool compare_callables(const struct session_map *map,
                              const Tensorflow__RunCallableResponse *got,
                              const Tensorflow__RunCallableResponse *want, struct error *err)
{
    if (got->n_fetch != want->n_fetch)
        return fail(err, DATA_LOSS, "%zu tensors, not %zu", got->n_fetch, want->n_fetch);
    for (size_t i = 0; i < want->n_fetch; i++)
        if (!compare_tensor(map, got->fetch[i], want->fetch[i], "a fetch", err))
            return false;
    return true;
}

static bool compare_devices(const Tensorflow__ListDevicesResponse *got,
                            const Tensorflow__ListDevicesResponse *want, struct error *err)
{
    size_t given = got->n_local_device + got->n_remote_device;
    size_t wanted = want->n_local_device + want->n_remote_device;
    for (size_t i = 0; i < wanted; i++) {
        const Tensorflow__DeviceAttributes *device =
            i < want->n_local_device ? want->local_device[i]
                                     : want->remote_device[i - want->n_local_device];
        bool found = false;
        for (size_t k = 0; k < given; k++)
            found |=
                !strcmp((k < got->n_local_device ? got->local_device[k]
                                                 : got->remote_device[k - got->n_local_device])
                            ->name,
                        device->name);
        if (!found)
            return fail(err, DATA_LOSS, "has no device %s", device->name);
    }
    return given == wanted || fail(err, DATA_LOSS, "%zu devices, not %zu", given, wanted);
}

/* An answer that is none of a step. */
static bool compare_other(const char *method, const void *got, const void *want,
                          struct error *err)
{
    if (!strcmp(method, "ListDevices"))
        return compare_devices(got, want, err);
    if (strcmp(method, "ExtendSession") != 0)
        return true;
    int64_t is = ((const Tensorflow__ExtendSessionResponse *)got)->new_graph_version;
    int64_t was = ((const Tensorflow__ExtendSessionResponse *)want)->new_graph_version;
    return is == was ||
           fail(err, DATA_LOSS, "version %lld, not %lld", (long long)is, (long long)was);
}

static const ProtobufCMessageDescriptor *answer_of(const char *method)
{
    static const struct {
        const char *method;
        const ProtobufCMessageDescriptor *answer;
    } rows[] = {
        {"CreateSession", &tensorflow__create_session_response__descriptor},
        {"ExtendSession", &tensorflow__extend_session_response__descriptor},
        {"RunStep", &tensorflow__run_step_response__descriptor},
        {"RunCallable", &tensorflow__run_callable_response__descriptor},
        {"ListDevices", &tensorflow__list_devices_response__descriptor},
        {"PartialRunSetup", &tensorflow__partial_run_setup_response__descriptor},
        {"MakeCallable", &tensorflow__make_callable_response__descriptor},
    };
    for (int i = 0; i < ARRAY_LEN(rows); i++)
        if (!strcmp(rows[i].method, method))
            return rows[i].answer;
    return NULL; /* an empty message */
}

bool session_compare(const struct session_map *map, const Call *call,
                     const struct str *response, const struct error *status, bool values,
                     struct error *err)
{
    const char *method = session_calls_method(call);
    const ProtobufCMessageDescriptor *answer = answer_of(method);
    if (call->status == CALL_CANCELLED && status && status->code == CANCELLED)
        return true;
    if (call->status || status)
        return compare_errors(map, call->status, call->message, status ? status->code : OK,
                              status ? status->text : "", err);
    if (!answer)
        return true;
    struct arena *arena = arena_new();
    const void *want =
        message_unpack(answer, call->response.data, call->response.len, arena, err);
    const void *got =
        want ? message_unpack(answer, response->data, response->size, arena, err) : NULL;
    bool ok = got;
    if (ok && !strcmp(method, "RunStep"))
        ok = compare_steps(map, got, want, values, err);
    else if (ok && !strcmp(method, "RunCallable"))
        ok = compare_callables(map, got, want, err);
    else if (ok)
        ok = compare_other(method, got, want, err);
    arena_free(arena);
    return ok;
}
