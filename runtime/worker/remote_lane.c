/* remote_lane.c - calls to a task of this machine over its socket. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "runtime/worker/remote.h"
#include "runtime/worker/wire.h"

static struct lane *lane_new(const struct remote *remote, const struct wire_met *met)
{
    const struct rpc_client_options options = {.address = met->socket,
                                               .secret = met->secret,
                                               .shown = remote->base.task,
                                               .message_bytes_max = LIMIT_MESSAGE_BYTES - 1};
    struct error err;
    struct rpc_client *client = *met->socket ? rpc_client_new(&options, &err) : NULL;
    if (!client)
        return NULL;
    struct lane *lane = alloc_bytes(sizeof(*lane));
    lane->client = client;
    lane->socket = alloc_text(met->socket);
    return lane;
}

static void free_lanes(struct lane *lane)
{
    while (lane) {
        struct lane *next = lane->next;
        rpc_client_cancel(lane->client);
        rpc_client_free(lane->client);
        free(lane->socket);
        free(lane);
        lane = next;
    }
}

/* Those that were left and that nobody is about to use. */
static struct lane *take_idle_locked(struct remote *remote)
{
    struct lane *idle = NULL;
    for (struct lane **at = &remote->left; *at;) {
        struct lane *lane = *at;
        if (lane->users) {
            at = &lane->next;
            continue;
        }
        *at = lane->next;
        lane->next = idle;
        idle = lane;
    }
    return idle;
}

static void leave_locked(struct remote *remote)
{
    struct lane *lane = remote->lane;
    if (!lane)
        return;
    lane->next = remote->left;
    remote->left = lane;
    remote->lane = NULL;
}

void remote_lane_set(struct remote *remote, const struct wire_met *met)
{
    struct lane *lane = met ? lane_new(remote, met) : NULL;
    pthread_mutex_lock(&remote->lock);
    /* A process that was asked again is perhaps the same, with calls under way. */
    bool same = lane && remote->lane && !strcmp(lane->socket, remote->lane->socket);
    if (!same) {
        leave_locked(remote);
        remote->lane = lane;
        lane = NULL;
    }
    struct lane *idle = take_idle_locked(remote);
    pthread_mutex_unlock(&remote->lock);
    free_lanes(lane);
    free_lanes(idle);
}

struct lane *remote_lane_hold_locked(struct remote *remote)
{
    struct lane *lane = remote->peer == PEER_NEAR ? remote->lane : NULL;
    if (lane)
        lane->users++;
    return lane;
}

void remote_lane_drop(struct remote *remote, struct lane *lane)
{
    if (!lane)
        return;
    pthread_mutex_lock(&remote->lock);
    lane->users--;
    pthread_mutex_unlock(&remote->lock);
}

void remote_lane_leave(struct remote *remote)
{
    pthread_mutex_lock(&remote->lock);
    struct lane *lane = remote->lane;
    if (lane)
        lane->users++;
    leave_locked(remote);
    pthread_mutex_unlock(&remote->lock);
    if (lane)
        rpc_client_cancel(lane->client);
    remote_lane_drop(remote, lane);
}

void remote_lane_free(struct remote *remote)
{
    pthread_mutex_lock(&remote->lock);
    leave_locked(remote);
    struct lane *lanes = remote->left;
    remote->left = NULL;
    pthread_mutex_unlock(&remote->lock);
    free_lanes(lanes);
}

void remote_start(struct remote *remote, const char *path, const struct str *request,
                  rpc_done *done, void *arg)
{
    pthread_mutex_lock(&remote->lock);
    bool is_known = remote->peer != PEER_UNKNOWN && remote->peer != PEER_OURS;
    struct lane *lane = remote_lane_hold_locked(remote);
    pthread_mutex_unlock(&remote->lock);
    if (!is_known)
        remote_ask(remote);
    rpc_client_start(lane ? lane->client : remote->client, path, request, done, arg);
    remote_lane_drop(remote, lane);
}

void remote_cancel_started(struct remote *remote, const void *arg)
{
    pthread_mutex_lock(&remote->lock);
    struct lane *lane = remote->lane;
    if (lane)
        lane->users++;
    pthread_mutex_unlock(&remote->lock);
    rpc_client_cancel_started(remote->client, arg);
    if (lane)
        rpc_client_cancel_started(lane->client, arg);
    remote_lane_drop(remote, lane);
}
