/* meetings.c - addresses of the tasks of an attempt, as their agents tell them. */

#include "server/meetings.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/map.h"
#include "db/jobs.h"
#include "proto/agent_pb.h"
#include "server/cluster.h"

#define MEETING_US UINT64_C(3600000000) /* then it is forgotten; agents say it again */

struct meeting { /* of the tasks of an attempt */
    struct place {
        char role[16];
        int index;
        int64_t placed; /* as db_task has it */
        char host[64];
        int port;
    } * places;
    int count;
    int capacity;
    uint64_t used_us;
};

struct meetings {
    struct db *db;
    char *folder;
    struct map *all; /* by the attempt's epoch, as text */
};

struct meetings *meetings_new(struct db *db, const char *folder)
{
    struct meetings *meetings = alloc_bytes(sizeof(*meetings));
    meetings->db = db;
    meetings->folder = alloc_text(folder);
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

void meetings_free(struct meetings *meetings)
{
    if (!meetings)
        return;
    while (map_count(meetings->all))
        meeting_drop(meetings, map_key(meetings->all, 0));
    map_free(meetings->all);
    free(meetings->folder);
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
    *place = (struct place){.index = request->task.index,
                            .placed = request->task.attempt_epoch,
                            .port = request->port};
    snprintf(place->role, sizeof(place->role), "%s", request->task.role);
    snprintf(place->host, sizeof(place->host), "%s", request->host);
}

static bool host_is_good(const char *host)
{
    return *host && strlen(host) < sizeof(((struct place *)0)->host) &&
           host[strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                             "0123456789.-")] == '\0';
}

/* The tasks of a model have a certificate that is theirs alone; programs do as they like. */
static bool certify(const struct meetings *meetings, struct db_conn *conn,
                    const struct db_job *job, int64_t epoch, struct arena *arena,
                    struct agent_meet_response *met, struct error *err)
{
    return job->program[0] || cluster_certificate(conn, meetings->folder, epoch, arena,
                                                  &met->certificate, &met->key, err);
}

/* Whether one of its tasks may go elsewhere while the others stay. */
static bool may_part(struct db_conn *conn, int64_t job, struct arena *arena, bool *may,
                     struct error *err)
{
    struct db_need *needs;
    int count;
    *may = false;
    if (!db_jobs_needs(conn, job, arena, &needs, &count, err))
        return false;
    for (int i = 0; i < count; i++)
        *may = *may || needs[i].alone;
    return true;
}

/* The addresses of all; false while one is missing.  `inside`: nobody else comes to them.
 * `*changed`: not all are as they are kept. */
static bool addresses(const struct meeting *meeting, struct db_task *tasks, int count,
                      bool inside, struct arena *arena, struct agent_meet_response *met,
                      bool *changed)
{
    struct agent_task_address *cluster = arena_array(arena, (size_t)count, sizeof(*cluster));
    bool one_node = inside;
    for (int i = 0; i < count; i++)
        one_node = one_node && tasks[i].node_id == tasks[0].node_id;
    for (int i = 0; i < count; i++) {
        const struct place *place = place_find(meeting, tasks[i].role, tasks[i].index);
        const char *kept = tasks[i].address;
        if (place && place->placed != tasks[i].placed)
            place = NULL; /* it has been placed anew */
        if (!place && !*kept)
            return false;
        if (place)
            tasks[i].address =
                arena_printf(arena, "%s:%d", one_node ? "127.0.0.1" : place->host, place->port);
        *changed = *changed || strcmp(kept, tasks[i].address) != 0;
        cluster[i] =
            (struct agent_task_address){tasks[i].role, tasks[i].index, tasks[i].address};
    }
    met->cluster = cluster;
    met->cluster_count = count;
    return true;
}

bool meetings_meet(struct meetings *meetings, const struct agent_meet_request *request,
                   int64_t epoch, struct arena *arena, struct agent_meet_response *met,
                   struct error *err)
{
    struct db_task *tasks;
    struct db_job job;
    int count;
    *met = (struct agent_meet_response){0};
    if (!host_is_good(request->host) || request->port <= 0 || request->port > 65535)
        return fail(err, INVALID, "'%.60s:%d' is no address", request->host, request->port);
    struct db_conn *conn = db_read(meetings->db, DB_CONTROL, err);
    bool all = false, parts = false, changed = false;
    bool ok = conn && db_tasks_list(conn, epoch, arena, &tasks, &count, err) &&
              db_jobs_find(conn, request->task.job_id, arena, &job, err) &&
              may_part(conn, job.number, arena, &parts, err);
    if (ok) {
        struct meeting *meeting = meeting_of(meetings, epoch);
        bool inside = !parts && !cluster_is(&job);
        place_set(meeting, request);
        all = addresses(meeting, tasks, count, inside, arena, met, &changed);
        ok = !all || certify(meetings, conn, &job, epoch, arena, met, err);
    }
    db_read_done(meetings->db, conn);
    /* Before the first is told: one that has begun does not say again where it is. */
    ok = ok && (!all || !changed || db_tasks_meet(meetings->db, tasks, count, err));
    if (ok && all)
        failpoint("server.met");
    return ok;
}
