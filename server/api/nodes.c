/* nodes.c - the machines that have joined, what they have and what is in use. */

#include "db/nodes.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "scheduler/loop.h"
#include "server/api/api.h"
#include "server/job.h"
#include "server/reply.h"
#include "server/request.h"

static bool read_nodes(struct request *req, struct db_node **nodes, int *count,
                       struct error *err)
{
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    if (!conn)
        return false;
    bool ok = db_nodes_list(conn, req->arena, nodes, count, err);
    db_read_done(req->services->db, conn);
    return ok;
}

/* "joined", "away" (no session since the server started), "suspect", "lost", "draining",
 * "cleaning". */
static const char *state_of(const struct db_node *node, const struct loop_node *now)
{
    if (!now || !now->session)
        return now && now->state == NODE_LOST ? "lost" : "away";
    if (now->state != NODE_JOINED)
        return db_node_state_name(now->state);
    if (node->draining || now->draining)
        return "draining";
    return now->cleaning ? "cleaning" : "joined";
}

static json_t *node_json(const struct db_node *node, const struct loop_node *now)
{
    bool here = now && now->session;
    int64_t seen = here && now->silent_us >= 0 ? (int64_t)clock_wall_us() - now->silent_us : 0;
    json_t *labels = json_loads(node->labels, 0, NULL);
    return json_pack(
        "{s:I, s:s, s:s, s:f, s:f, s:I, s:I, s:i, s:i, s:o, s:i, s:s, s:o, s:o, s:o}", "id",
        (json_int_t)node->id, "name", node->name, "state", state_of(node, now), "cpus",
        (double)node->cpu_millis / 1000, "cpus_used",
        here ? (double)(node->cpu_millis - now->cpu_millis_free) / 1000 : 0.0, "memory_bytes",
        (json_int_t)node->memory_bytes, "memory_bytes_used",
        (json_int_t)(here ? node->memory_bytes - now->memory_bytes_free : 0), "gpus",
        node->gpus, "gpus_used", here ? node->gpus - now->gpus_free : 0, "gpu_type",
        job_text(node->gpu_type), "tasks", here ? now->tasks_count : 0, "version",
        node->version, "labels", labels ? labels : json_object(), "joined_at",
        job_time(node->joined_us), "last_seen_at", job_time(seen));
}

/* What the scheduler knows of it; NULL: nothing. */
static const struct loop_node *now_of(const struct loop_node *now, int count, int64_t id)
{
    for (int i = 0; i < count; i++)
        if (now[i].id == id)
            return &now[i];
    return NULL;
}

/* Nobody is shown it: the server's own comes back by itself, others with a new token. */
static bool is_removed(const struct db_node *node, const struct loop_node *now)
{
    return node->removed && !(now && now->session);
}

/* GET /api/v1/nodes: {items: […]}, by id. */
static bool nodes_list(struct request *req, struct error *err)
{
    struct db_node *nodes;
    struct loop_node *now;
    int count;
    int now_count;
    if (!read_nodes(req, &nodes, &count, err) ||
        !loop_nodes(req->services->loop, req->arena, &now, &now_count, err))
        return false;
    json_t *items = json_array();
    for (int i = 0; i < count; i++) {
        const struct loop_node *here = now_of(now, now_count, nodes[i].id);
        if (!is_removed(&nodes[i], here))
            json_array_append_new(items, node_json(&nodes[i], here));
    }
    return reply_json(req, 200, json_pack("{s:o}", "items", items), err);
}

static bool find_node(struct request *req, struct db_node *node, struct error *err)
{
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    bool ok = conn && db_nodes_find(conn, req->params[0], req->arena, node, err);
    db_read_done(req->services->db, conn);
    return ok;
}

/* GET /api/v1/nodes/{name} */
static bool nodes_show(struct request *req, struct error *err)
{
    struct db_node node;
    struct loop_node *now;
    int count;
    return find_node(req, &node, err) &&
           loop_nodes(req->services->loop, req->arena, &now, &count, err) &&
           reply_json(req, 200, node_json(&node, now_of(now, count, node.id)), err);
}

/*
 * DELETE /api/v1/nodes/{name}: what runs there is given up at once and tried elsewhere, and no
 * token of before lets the node in again, nor its certificate.
 */
static bool nodes_remove(struct request *req, struct error *err)
{
    struct db_node node;
    if (!find_node(req, &node, err))
        return false;
    char *why = alloc_printf("node '%s' was removed by %s", node.name, req->user.user);
    bool ok = db_nodes_remove(req->services->db, node.id, err) &&
              loop_gone(req->services->loop, node.id, why, err);
    free(why);
    return ok && reply_bytes(req, 204, NULL, "", 0);
}

static bool drain(struct request *req, bool on, struct error *err)
{
    struct db_node node;
    if (!find_node(req, &node, err) || !loop_drain(req->services->loop, node.id, on, err))
        return false;
    return reply_json(req, 202, json_pack("{s:s, s:b}", "name", node.name, "draining", on),
                      err);
}

static bool nodes_drain(struct request *req, struct error *err)
{
    return drain(req, true, err);
}

static bool nodes_undrain(struct request *req, struct error *err)
{
    return drain(req, false, err);
}

const struct route nodes_routes[] = {
    {"GET", "/api/v1/nodes", AUTH_IN_PROJECT(ROLE_VIEWER), nodes_list,
     "Nodes and what is in use on them", NULL, NULL, 200, "NodeList"},
    {"GET", "/api/v1/nodes/{name}", AUTH_IN_PROJECT(ROLE_VIEWER), nodes_show, "One node", NULL,
     NULL, 200, "Node"},
    {"DELETE", "/api/v1/nodes/{name}", ROLE_ADMIN, nodes_remove,
     "Remove a node: its tasks are tried elsewhere, it may not come back by itself", NULL, NULL,
     204, NULL},
    {"POST", "/api/v1/nodes/{name}:drain", ROLE_ADMIN, nodes_drain,
     "Start nothing new on a node", NULL, NULL, 202, "NodeDrain"},
    {"POST", "/api/v1/nodes/{name}:undrain", ROLE_ADMIN, nodes_undrain, "Use a node again",
     NULL, NULL, 202, "NodeDrain"},
    {0},
};
