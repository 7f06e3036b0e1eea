/* session_clients.c - what clients did, against masters of ours. */

#include <ftw.h>
#include <stdlib.h>

#include "base/limits.h"
#include "proto/rpc.h"
#include "runtime/session.h"
#include "tests/interop/servers.h"
#include "tests/interop/sessions/sessions.h"

struct clients {
    struct servers servers;
    struct rpc_client *clients[SERVERS_MAX];
    struct session_map map;
};

/* "client0>worker:1" */
static struct rpc_client *client_of(void *self, const Call *call)
{
    struct clients *clients = self;
    char name[64];
    int index;
    const char *to = strchr(call->peer, '>');
    if (to && sscanf(to + 1, "%63[^:]:%d", name, &index) == 2)
        for (int t = 0; t < clients->servers.count; t++) {
            char task[96];
            snprintf(task, sizeof(task), "/job:%s/replica:0/task:%d", name, index);
            if (!strcmp(task, clients->servers.names[t]))
                return clients->clients[t];
        }
    return clients->clients[0];
}

static bool request(void *self, const Call *call, struct str *out, struct error *err)
{
    struct clients *clients = self;
    if (!session_map_request(&clients->map, call, out, err))
        return false;
    session_map_folders(&clients->map, out);
    return true;
}

static bool compare(void *self, const Call *call, const struct str *response,
                    const struct error *status, bool concurrent, struct error *err)
{
    struct clients *clients = self;
    return session_compare(&clients->map, call, response, status, !concurrent, err) &&
           (status || call->status || session_map_learn(&clients->map, call, response, err));
}

static bool start(struct clients *clients, const struct session_calls *calls, struct error *err)
{
    const struct session_options how = {.threads = 1};
    int tasks = 1;
    for (int i = 0; i < calls->count; i++)
        if (strstr(calls->calls[i]->peer, ">ps:") || strstr(calls->calls[i]->peer, ">worker:1"))
            tasks = 3;
    if (!servers_start(&clients->servers, tasks, &how, err))
        return false;
    for (int t = 0; t < tasks; t++) {
        clients->clients[t] = rpc_client_new(
            &(struct rpc_client_options){.address = clients->servers.tasks[t].address,
                                         .message_bytes_max = LIMIT_MESSAGE_BYTES},
            err);
        if (!clients->clients[t])
            return false;
    }
    snprintf(clients->map.folder, sizeof(clients->map.folder), "/tmp/tsesXXXXXX");
    return mkdtemp(clients->map.folder) || error_errno(err, INTERNAL, "no folder in /tmp");
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
    (void)status;
    (void)type;
    (void)at;
    return remove(path);
}

bool session_clients(const struct session_calls *calls, struct session_totals *totals,
                     struct error *err)
{
    struct clients clients = {0};
    const struct session_player player = {&clients, client_of, request, compare};
    bool ok = start(&clients, calls, err) && session_play(&player, calls, totals, err);
    for (int t = 0; t < clients.servers.count; t++)
        rpc_client_free(clients.clients[t]);
    servers_stop(&clients.servers);
    if (clients.map.folder[0] &&
        nftw(clients.map.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
        printf("%s is left\n", clients.map.folder);
    free(clients.map.sessions);
    free(clients.map.numbers);
    return ok;
}
