/* program.c - from a spec's command to what an agent needs, and addresses that are exchanged.
 */

#include "server/program.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/str.h"
#include "db/jobs.h"
#include "db/secrets.h"
#include "runtime/spec/spec.h"
#include "server/store.h"

#define MEETING_US UINT64_C(3600000000) /* then it is forgotten; agents say it again */

/* --- the program --- */

static bool is_plain(const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,@%+-";
    return *word && word[strspn(word, plain)] == '\0';
}

const char *program_text(const struct spec *spec, struct arena *arena)
{
    struct str text = {0};
    for (int i = 0; i < spec->command.words_count && text.size < PROGRAM_TEXT_BYTES; i++) {
        const char *word = spec->command.words[i];
        str_add(&text, i ? " " : "");
        if (is_plain(word)) {
            str_add(&text, word);
            continue;
        }
        str_add_char(&text, '\'');
        for (const char *c = word; *c && text.size < PROGRAM_TEXT_BYTES; c++) {
            if (*c == '\'')
                str_add(&text, "'\\''");
            else
                str_add_char(&text, *c);
        }
        str_add_char(&text, '\'');
    }
    if (text.size > PROGRAM_TEXT_BYTES) {
        size_t size = PROGRAM_TEXT_BYTES - 3;
        while (size && ((unsigned char)text.data[size] & 0xc0) == 0x80)
            size--; /* not within a character */
        text.data[text.size = size] = '\0';
        str_add(&text, "...");
    }
    const char *out = arena_text(arena, str_text(&text));
    str_release(&text);
    return out;
}

static const struct agent_variable *variables(const struct spec_variable *from, int count,
                                              struct arena *arena)
{
    struct agent_variable *to = arena_array(arena, (size_t)count + 1, sizeof(*to));
    for (int i = 0; i < count; i++)
        to[i] = (struct agent_variable){from[i].name, from[i].value};
    return to;
}

/* The values, as they are now; what cannot be read is the program's problem. */
static const struct agent_secret *secrets(const struct db *db, struct db_conn *conn,
                                          const struct spec_command *command,
                                          struct arena *arena, const char **problem)
{
    struct error err;
    struct agent_secret *to =
        arena_array(arena, (size_t)command->secrets_count + 1, sizeof(*to));
    for (int i = 0; i < command->secrets_count; i++) {
        const struct spec_secret *from = &command->secrets[i];
        to[i] = (struct agent_secret){from->name, "", from->in_env};
        if (!db_secrets_read(db, conn, from->name, arena, &to[i].value, &err))
            *problem = arena_text(arena, err.text);
    }
    return to;
}

bool program_read(const struct db *db, struct db_conn *conn, const char *spec, int tasks,
                  struct arena *arena, struct agent_program *program, struct error *err)
{
    const struct spec *parsed = spec_parse(arena, spec, strlen(spec), err);
    if (!parsed)
        return error_prefix(err, "the stored spec: ");
    const struct spec_command *command = &parsed->command;
    struct agent_file *files =
        arena_array(arena, (size_t)command->files_count + 1, sizeof(*files));
    for (int i = 0; i < command->files_count; i++)
        files[i] = (struct agent_file){command->files[i].path, command->files[i].sha256};
    const char *problem = "";
    const struct agent_secret *values = secrets(db, conn, command, arena, &problem);
    *program = (struct agent_program){
        .words = command->words,
        .words_count = command->words_count,
        .variables = variables(command->env, command->env_count, arena),
        .variables_count = command->env_count,
        .secrets = values,
        .secrets_count = *problem ? 0 : command->secrets_count,
        .files = files,
        .files_count = command->files_count,
        .folder = command->workdir ? command->workdir : "",
        .tasks = tasks,
        .problem = problem,
    };
    return true;
}

bool program_check_files(const struct spec *spec, const char *folder, struct error *err)
{
    for (int i = 0; i < spec->command.files_count; i++) {
        const struct spec_file *file = &spec->command.files[i];
        int64_t size;
        if (store_size(folder, file->sha256, &size, err))
            continue;
        if (err->code != NOT_FOUND)
            return false;
        return error_at(err, "/files", INVALID,
                        "%s has not been uploaded: PUT its bytes to /api/v1/files/%s first",
                        file->path, file->sha256);
    }
    return true;
}

bool program_check_secrets(const struct spec *spec, struct db *db, struct error *err)
{
    if (!spec->command.secrets_count)
        return true;
    struct db_conn *conn = db_read(db, DB_CONTROL, err);
    bool ok = conn != NULL;
    for (int i = 0; i < spec->command.secrets_count && ok; i++) {
        const char *name = spec->command.secrets[i].name;
        bool known;
        char pointer[LIMIT_NAME_BYTES + 16];
        snprintf(pointer, sizeof(pointer), "/secrets/%s", name);
        ok = db_secrets_known(conn, name, &known, err) &&
             (known || error_at(err, pointer, INVALID,
                                "there is no secret %s: set it with trainyard secret set %s",
                                name, name));
    }
    db_read_done(db, conn);
    return ok;
}

/* --- meeting --- */

struct meeting { /* of the tasks of an attempt */
    struct place {
        char role[16];
        int index;
        int64_t node;
        char host[64];
        int port;
    } * places;
    int count;
    int capacity;
    uint64_t used_us;
};

struct meetings {
    struct map *all; /* by the attempt's epoch, as text */
};

struct meetings *program_meetings_new(void)
{
    struct meetings *meetings = alloc_bytes(sizeof(*meetings));
    meetings->all = map_new();
    return meetings;
}

static void meeting_drop(struct meetings *meetings, const char *key)
{
    char *own = alloc_text(key);
    struct meeting *meeting = map_remove(meetings->all, own);
    if (meeting)
        free(meeting->places);
    free(meeting);
    free(own);
}

void program_meetings_free(struct meetings *meetings)
{
    if (!meetings)
        return;
    while (map_count(meetings->all))
        meeting_drop(meetings, map_key(meetings->all, 0));
    map_free(meetings->all);
    free(meetings);
}

/* The meeting of an attempt, made if there is none; old ones are forgotten. */
static struct meeting *meeting_of(struct meetings *meetings, int64_t epoch)
{
    char key[32];
    uint64_t now_us = clock_monotonic_us();
    for (int i = map_count(meetings->all) - 1; i >= 0; i--) {
        const struct meeting *other = map_value(meetings->all, i);
        if (now_us - other->used_us > MEETING_US)
            meeting_drop(meetings, map_key(meetings->all, i));
    }
    snprintf(key, sizeof(key), "%lld", (long long)epoch);
    struct meeting *meeting = map_find(meetings->all, key);
    if (!meeting) {
        meeting = alloc_bytes(sizeof(*meeting));
        map_set(meetings->all, key, meeting);
    }
    meeting->used_us = now_us;
    return meeting;
}

static struct place *place_find(const struct meeting *meeting, const char *role, int index)
{
    for (int i = 0; i < meeting->count; i++) {
        if (meeting->places[i].index == index && !strcmp(meeting->places[i].role, role))
            return &meeting->places[i];
    }
    return NULL;
}

static void place_set(struct meeting *meeting, const struct agent_meet_request *request)
{
    struct place *place = place_find(meeting, request->task.role, request->task.index);
    if (!place) {
        meeting->places = alloc_grow(meeting->places, meeting->count, &meeting->capacity,
                                     sizeof(*meeting->places));
        place = &meeting->places[meeting->count++];
    }
    *place = (struct place){
        .index = request->task.index, .node = request->node_id, .port = request->port};
    snprintf(place->role, sizeof(place->role), "%s", request->task.role);
    snprintf(place->host, sizeof(place->host), "%s", request->host);
}

static bool host_is_good(const char *host)
{
    return *host && strlen(host) < sizeof(((struct place *)0)->host) &&
           host[strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                             "0123456789.-")] == '\0';
}

bool program_meet(struct meetings *meetings, struct db *db,
                  const struct agent_meet_request *request, struct arena *arena,
                  struct agent_meet_response *met, struct error *err)
{
    struct db_task *tasks;
    int count;
    *met = (struct agent_meet_response){0};
    if (!host_is_good(request->host) || request->port <= 0 || request->port > 65535)
        return fail(err, INVALID, "'%.60s:%d' is no address", request->host, request->port);
    struct db_conn *conn = db_read(db, DB_CONTROL, err);
    bool ok =
        conn && db_tasks_list(conn, request->task.attempt_epoch, arena, &tasks, &count, err);
    db_read_done(db, conn);
    if (!ok)
        return false;
    struct meeting *meeting = meeting_of(meetings, request->task.attempt_epoch);
    place_set(meeting, request);
    struct agent_task_address *cluster = arena_array(arena, (size_t)count, sizeof(*cluster));
    bool one_node = true;
    for (int i = 0; i < count; i++)
        one_node = one_node && tasks[i].node_id == tasks[0].node_id;
    for (int i = 0; i < count; i++) {
        const struct place *place = place_find(meeting, tasks[i].role, tasks[i].index);
        if (!place)
            return true;
        cluster[i].role = tasks[i].role;
        cluster[i].index = tasks[i].index;
        cluster[i].address =
            arena_printf(arena, "%s:%d", one_node ? "127.0.0.1" : place->host, place->port);
    }
    *met = (struct agent_meet_response){cluster, count};
    return true;
}
