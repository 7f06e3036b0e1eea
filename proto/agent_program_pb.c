/* agent_program_pb.c - a program as part of a StartTask, and what agents ask for to run it. */

#include "trainyard/agent.pb-c.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "proto/agent_wire.h"
#include "proto/message.h"

/* --- a program --- */

static Pb__Variable **variables_wire(const struct agent_variable *from, int count,
                                     struct arena *arena)
{
    Pb__Variable **all = arena_array(arena, (size_t)count, sizeof(*all));
    for (int i = 0; i < count; i++) {
        all[i] = arena_alloc(arena, sizeof(*all[i]));
        pb__variable__init(all[i]);
        all[i]->name = agent_wire_text(from[i].name);
        all[i]->value = agent_wire_text(from[i].value);
    }
    return all;
}

static Pb__Secret **secrets_wire(const struct agent_secret *from, int count,
                                 struct arena *arena)
{
    Pb__Secret **all = arena_array(arena, (size_t)count, sizeof(*all));
    for (int i = 0; i < count; i++) {
        all[i] = arena_alloc(arena, sizeof(*all[i]));
        pb__secret__init(all[i]);
        all[i]->name = agent_wire_text(from[i].name);
        all[i]->value = agent_wire_text(from[i].value);
        all[i]->in_env = from[i].in_env;
    }
    return all;
}

Pb__Program *agent_wire_program(const struct agent_program *from, struct arena *arena)
{
    Pb__Program *to = arena_alloc(arena, sizeof(*to));
    pb__program__init(to);
    to->n_words = (size_t)from->words_count;
    to->words = arena_array(arena, to->n_words, sizeof(*to->words));
    for (int i = 0; i < from->words_count; i++)
        to->words[i] = agent_wire_text(from->words[i]);
    to->n_variables = (size_t)from->variables_count;
    to->variables = variables_wire(from->variables, from->variables_count, arena);
    to->n_secrets = (size_t)from->secrets_count;
    to->secrets = secrets_wire(from->secrets, from->secrets_count, arena);
    to->n_files = (size_t)from->files_count;
    to->files = arena_array(arena, to->n_files, sizeof(*to->files));
    for (int i = 0; i < from->files_count; i++) {
        to->files[i] = arena_alloc(arena, sizeof(*to->files[i]));
        pb__file__init(to->files[i]);
        to->files[i]->path = agent_wire_text(from->files[i].path);
        to->files[i]->sha256 = agent_wire_text(from->files[i].sha256);
    }
    to->folder = agent_wire_text(from->folder);
    to->tasks = from->tasks;
    to->problem = agent_wire_text(from->problem);
    return to;
}

static bool variables_plain(Pb__Variable **from, size_t count, struct arena *arena,
                            const struct agent_variable **out, struct error *err)
{
    struct agent_variable *all = agent_plain_array(arena, count, sizeof(*all), err);
    for (size_t i = 0; all && i < count; i++)
        all[i] = (struct agent_variable){from[i]->name, from[i]->value};
    *out = all;
    return all != NULL;
}

static bool secrets_plain(Pb__Secret **from, size_t count, struct arena *arena,
                          const struct agent_secret **out, struct error *err)
{
    struct agent_secret *all = agent_plain_array(arena, count, sizeof(*all), err);
    for (size_t i = 0; all && i < count; i++)
        all[i] = (struct agent_secret){from[i]->name, from[i]->value, from[i]->in_env};
    *out = all;
    return all != NULL;
}

bool agent_plain_program(const Pb__Program *from, struct arena *arena, struct agent_program *to,
                         struct error *err)
{
    struct agent_file *files = agent_plain_array(arena, from->n_files, sizeof(*files), err);
    for (size_t i = 0; files && i < from->n_files; i++)
        files[i] = (struct agent_file){from->files[i]->path, from->files[i]->sha256};
    to->words = (const char *const *)from->words;
    to->words_count = (int)from->n_words;
    to->variables_count = (int)from->n_variables;
    to->secrets_count = (int)from->n_secrets;
    to->files = files;
    to->files_count = (int)from->n_files;
    to->folder = from->folder;
    to->tasks = from->tasks;
    to->problem = from->problem;
    return files &&
           variables_plain(from->variables, from->n_variables, arena, &to->variables, err) &&
           secrets_plain(from->secrets, from->n_secrets, arena, &to->secrets, err);
}

/* --- fetch --- */

void agent_fetch_request_pack(const struct agent_fetch_request *from, struct str *out)
{
    struct arena *arena = arena_new();
    Pb__FetchRequest to = PB__FETCH_REQUEST__INIT;
    to.node_id = from->node_id;
    to.node_epoch = from->node_epoch;
    to.node_key = agent_wire_text(from->node_key);
    to.task = agent_wire_ref(&from->task, arena);
    to.sha256 = agent_wire_text(from->what.sha256);
    to.kind = (Pb__FetchKind)from->what.kind;
    to.path = agent_wire_text(from->what.path);
    to.job = from->what.job;
    to.offset = from->offset;
    message_pack(&to.base, out);
    arena_free(arena);
}

void agent_fetch_response_pack(const struct agent_fetch_response *from, struct str *out)
{
    Pb__FetchResponse to = PB__FETCH_RESPONSE__INIT;
    to.data = (ProtobufCBinaryData){from->data_size, (uint8_t *)from->data};
    message_pack(&to.base, out);
}

bool agent_fetch_request_unpack(const void *bytes, size_t size, struct arena *arena,
                                struct agent_fetch_request *to, struct error *err)
{
    const Pb__FetchRequest *from =
        message_unpack(&pb__fetch_request__descriptor, bytes, size, arena, err);
    if (!from)
        return error_prefix(err, "FetchRequest: ");
    *to = (struct agent_fetch_request){
        .node_id = from->node_id,
        .node_epoch = from->node_epoch,
        .node_key = from->node_key,
        .what = {(enum agent_fetch_kind)from->kind, from->sha256, from->path, from->job},
        .offset = from->offset,
    };
    agent_plain_ref(from->task, &to->task);
    return true;
}

bool agent_fetch_response_unpack(const void *bytes, size_t size, struct arena *arena,
                                 struct agent_fetch_response *to, struct error *err)
{
    const Pb__FetchResponse *from =
        message_unpack(&pb__fetch_response__descriptor, bytes, size, arena, err);
    if (!from)
        return error_prefix(err, "FetchResponse: ");
    *to = (struct agent_fetch_response){from->data.data, from->data.len};
    return true;
}

/* --- meet --- */

void agent_meet_request_pack(const struct agent_meet_request *from, struct str *out)
{
    struct arena *arena = arena_new();
    Pb__MeetRequest to = PB__MEET_REQUEST__INIT;
    to.node_id = from->node_id;
    to.node_epoch = from->node_epoch;
    to.node_key = agent_wire_text(from->node_key);
    to.task = agent_wire_ref(&from->task, arena);
    to.host = agent_wire_text(from->host);
    to.port = from->port;
    message_pack(&to.base, out);
    arena_free(arena);
}

void agent_meet_response_pack(const struct agent_meet_response *from, struct str *out)
{
    struct arena *arena = arena_new();
    Pb__MeetResponse to = PB__MEET_RESPONSE__INIT;
    to.n_cluster = (size_t)from->cluster_count;
    to.cluster = agent_wire_addresses(from->cluster, from->cluster_count, arena);
    to.certificate = agent_wire_text(from->certificate);
    to.key = agent_wire_text(from->key);
    message_pack(&to.base, out);
    arena_free(arena);
}

bool agent_meet_request_unpack(const void *bytes, size_t size, struct arena *arena,
                               struct agent_meet_request *to, struct error *err)
{
    const Pb__MeetRequest *from =
        message_unpack(&pb__meet_request__descriptor, bytes, size, arena, err);
    if (!from)
        return error_prefix(err, "MeetRequest: ");
    *to = (struct agent_meet_request){.node_id = from->node_id,
                                      .node_epoch = from->node_epoch,
                                      .node_key = from->node_key,
                                      .host = from->host,
                                      .port = from->port};
    agent_plain_ref(from->task, &to->task);
    return true;
}

bool agent_meet_response_unpack(const void *bytes, size_t size, struct arena *arena,
                                struct agent_meet_response *to, struct error *err)
{
    const Pb__MeetResponse *from =
        message_unpack(&pb__meet_response__descriptor, bytes, size, arena, err);
    if (!from)
        return error_prefix(err, "MeetResponse: ");
    to->cluster_count = (int)from->n_cluster;
    to->certificate = from->certificate;
    to->key = from->key;
    return agent_plain_addresses(from->cluster, from->n_cluster, arena, &to->cluster, err);
}
