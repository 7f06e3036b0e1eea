/* remote.c - tensors of a worker of another process, in the best form that it knows. */

#include <stdlib.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/connection.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/turn.h"
#include "runtime/worker/incoming.h"
#include "runtime/worker/remote.h"
#include "runtime/worker/service.h"
#include "runtime/worker/wire.h"

#define METHOD(name) "/tensorflow.WorkerService/" name

/* Sends what waits for an answer that has come, or asks what is to be known next. */
static void go_on(struct remote *remote);

/* --- what the task is --- */

void remote_learn(struct remote *remote, bool exchanges)
{
    pthread_mutex_lock(&remote->lock);
    if (remote->peer == PEER_UNKNOWN || remote->peer == PEER_ASKED)
        remote->peer = exchanges ? PEER_OURS : PEER_STOCK;
    pthread_mutex_unlock(&remote->lock);
    go_on(remote);
}

static void set_peer(struct remote *remote, enum peer peer)
{
    pthread_mutex_lock(&remote->lock);
    remote->peer = peer;
    pthread_mutex_unlock(&remote->lock);
}

static void learned(void *arg, const struct str *response, const struct error *err)
{
    struct remote *remote = arg;
    struct device devices[64];
    struct error bad;
    int count;
    bool exchanges = false;
    if (err) {
        set_peer(remote, PEER_UNKNOWN); /* it is asked again when something is next wanted */
        go_on(remote);
        return;
    }
    bool read = wire_read_status(response->data, response->size, devices, ARRAY_LEN(devices),
                                 &count, &exchanges, &bad);
    remote_learn(remote, read && exchanges);
}

/* --- far, but perhaps on the same fabric --- */

static void fabric_told(void *arg, const struct str *response, const struct error *err)
{
    struct remote *remote = arg;
    struct error bad;
    struct fabric_peer *before = NULL,
                       *fabric =
                           err ? NULL : fabric_connect(response->data, response->size, &bad);
    pthread_mutex_lock(&remote->lock);
    if (remote->peer == PEER_ASKED_FABRIC) {
        before = remote->fabric;
        remote->fabric = fabric;
        remote->peer = fabric ? PEER_FABRIC : PEER_FAR;
        fabric = NULL;
    }
    pthread_mutex_unlock(&remote->lock);
    fabric_disconnect(before);
    fabric_disconnect(fabric);
    go_on(remote);
}

static void ask_fabric(struct remote *remote)
{
    const struct str nothing = {0};
    set_peer(remote, fabric_is_open() ? PEER_ASKED_FABRIC : PEER_FAR);
    if (fabric_is_open())
        rpc_client_start(remote->client, SERVICE_FABRIC, &nothing, fabric_told, remote);
}

/* --- near --- */

struct meeting {
    struct remote *remote;
    struct near_process near;
};

static void met(void *arg, const struct str *response, const struct error *err)
{
    struct meeting *meeting = arg;
    struct remote *remote = meeting->remote;
    struct near_process *near = &meeting->near;
    struct arena *arena = arena_new();
    struct endpoint peer;
    struct wire_met met;
    struct error bad;
    bool is_near = !err && wire_read_met(response->data, response->size, arena, &met, &bad);
    if (is_near) {
        near->pid = (pid_t)met.pid;
        near->proof = met.proof;
        is_near = rpc_client_peer(remote->client, &peer) &&
                  connection_leads_to(&peer, near->pid) && near_prove(near, &bad);
    }
    remote_lane_set(remote, is_near ? &met : NULL);
    pthread_mutex_lock(&remote->lock);
    bool meets = remote->peer == PEER_MEETS;
    if (meets) {
        remote->near = *near;
        remote->peer = is_near ? PEER_NEAR : PEER_FAR;
    }
    pthread_mutex_unlock(&remote->lock);
    if (meets && !is_near)
        ask_fabric(remote);
    go_on(remote);
    arena_free(arena);
    free(meeting);
}

static void meet(struct remote *remote)
{
    struct meeting *meeting = alloc_bytes(sizeof(*meeting));
    unsigned char *nonce = meeting->near.nonce;
    char host[NEAR_HOST_BYTES];
    struct str request = {0};
    struct error err;
    meeting->remote = remote;
    if (!near_host(host, &err) ||
        getrandom(nonce, NEAR_NONCE_BYTES, 0) != (ssize_t)NEAR_NONCE_BYTES) {
        free(meeting);
        ask_fabric(remote);
        go_on(remote);
        return;
    }
    const struct wire_meet in = {host, nonce};
    wire_write_meet(&in, &request);
    rpc_client_start(remote->client, SERVICE_MEET, &request, met, meeting);
    str_release(&request);
}

/* --- a tensor --- */

struct asked {
    struct rpc_sink base; /* first */
    struct asked *next;   /* of those that wait until it is known whom they ask */
    char *key;
    int64_t step_id;
    struct incoming incoming;
    struct near_process near;
    struct lane *lane; /* that it goes by, until it has begun */
    struct remote *remote;
    rendezvous_receiver *receiver;
    void *arg;
    int64_t asked_us;
    bool is_given; /* before the call was over */
};

/* How long the value was on its way: by two clocks, which may differ, so never longer than
 * since it was asked for. */
static uint64_t travel_ns(const struct asked *asked)
{
    int64_t now_us = (int64_t)clock_wall_us(), since_us = asked->incoming.sent_us;
    if (since_us < asked->asked_us)
        since_us = asked->asked_us;
    return since_us < now_us ? (uint64_t)(now_us - since_us) * 1000 : 0;
}

/* Says which task it was that could not be reached, in TensorFlow's words. */
static void give(struct asked *asked, const struct error *err)
{
    struct incoming *incoming = &asked->incoming;
    struct error named;
    if (err && err->code == UNAVAILABLE) {
        (void)fail(&named, err->code,
                   "%s\nAdditional GRPC error information from remote target %s while calling "
                   "%s",
                   err->text, asked->remote->base.task, METHOD("RecvTensor"));
        err = &named;
    }
    rendezvous_set_travel(err ? 0 : travel_ns(asked));
    incoming_arrived(incoming);
    if (err || incoming->dead)
        asked->receiver(asked->arg, err ? NULL : &incoming->value, incoming->dead, err);
    else
        rendezvous_give(asked->receiver, asked->arg, &incoming->value);
    rendezvous_set_travel(0);
    incoming_release(incoming);
    asked->is_given = true;
}

/* What is whole is not held up by the end of the call. */
static bool take(struct rpc_sink *sink, const void *bytes, size_t size, struct error *err)
{
    struct asked *asked = (struct asked *)sink;
    if (asked->is_given)
        return fail(err, INVALID, "an answer to RecvTensor goes on behind its tensor");
    if (!incoming_take(&asked->incoming, bytes, size, err))
        return false;
    if (!asked->incoming.missing)
        give(asked, NULL);
    return true;
}

/* If this fails its step's end does it. */
static void given_back(void *arg, const struct str *response, const struct error *err)
{
    (void)arg;
    (void)response;
    (void)err;
}

void remote_give_back(void *arg, int64_t request_id)
{
    struct str request = {0};
    wire_write_finished(request_id, &request);
    remote_start(arg, SERVICE_FINISHED, &request, given_back, NULL);
    str_release(&request);
}

static void received(struct rpc_sink *sink, const struct error *err)
{
    struct asked *asked = (struct asked *)sink;
    struct error bad;
    if (!err && !incoming_end(&asked->incoming, &bad))
        err = &bad;
    if (err)
        remote_failed(asked->remote, err);
    if (asked->incoming.was_lent) /* whether it could be read or not */
        remote_give_back(asked->remote, asked->incoming.request_id);
    if (!asked->is_given)
        give(asked, err);
    fabric_disconnect(asked->incoming.fabric);
    free(asked->key);
    free(asked);
}

static void send_request(struct asked *asked, enum peer peer)
{
    struct remote *remote = asked->remote;
    struct lane *lane = asked->lane;
    struct str request = {0};
    asked->incoming.near = peer == PEER_NEAR ? &asked->near : NULL;
    asked->incoming.lender = remote->lender;
    const struct wire_receive in = {.step_id = asked->step_id,
                                    .key = asked->key,
                                    .request_id = asked->incoming.request_id,
                                    .near = peer == PEER_NEAR,
                                    .fabric = peer == PEER_FABRIC};
    wire_write_receive(&in, &request);
    rpc_client_start_into(lane ? lane->client : remote->client,
                          peer >= PEER_OURS ? SERVICE_CHUNKS : METHOD("RecvTensor"), &request,
                          &asked->base);
    remote_lane_drop(remote, lane);
    str_release(&request);
}

static bool has_question(enum peer peer)
{
    return peer == PEER_ASKED || peer == PEER_MEETS || peer == PEER_ASKED_FABRIC;
}

static void find_peer_locked(struct asked *asked)
{
    struct remote *remote = asked->remote;
    asked->near = remote->near;
    asked->lane = remote_lane_hold_locked(remote);
    if (remote->peer == PEER_FABRIC)
        asked->incoming.fabric = fabric_share(remote->fabric);
}

static void go_on(struct remote *remote)
{
    struct asked *ready = NULL;
    pthread_mutex_lock(&remote->lock);
    enum peer peer = remote->peer;
    if (peer == PEER_OURS && remote->waiting) {
        remote->peer = PEER_MEETS;
    } else if (!has_question(peer)) {
        ready = remote->waiting;
        remote->waiting = NULL;
        remote->waiting_end = &remote->waiting;
        for (struct asked *asked = ready; asked; asked = asked->next)
            find_peer_locked(asked);
    }
    bool meets = remote->peer != peer;
    pthread_mutex_unlock(&remote->lock);
    if (meets)
        meet(remote);
    while (ready) {
        struct asked *asked = ready;
        ready = asked->next;
        send_request(asked, peer);
    }
}

/* Has the call wait if it is not known yet whom it asks; the first to wait has to ask. */
static bool waits(struct asked *asked, enum peer *peer)
{
    struct remote *remote = asked->remote;
    pthread_mutex_lock(&remote->lock);
    *peer = remote->peer;
    bool is_known = *peer != PEER_UNKNOWN && *peer != PEER_OURS && !has_question(*peer);
    if (is_known) {
        find_peer_locked(asked);
    } else {
        *remote->waiting_end = asked;
        remote->waiting_end = &asked->next;
        if (*peer == PEER_UNKNOWN)
            remote->peer = PEER_ASKED;
    }
    pthread_mutex_unlock(&remote->lock);
    return !is_known;
}

void remote_ask(struct remote *remote)
{
    const struct str nothing = {0};
    pthread_mutex_lock(&remote->lock);
    enum peer peer = remote->peer;
    if (peer == PEER_UNKNOWN)
        remote->peer = PEER_ASKED;
    else if (peer == PEER_OURS)
        remote->peer = PEER_MEETS;
    pthread_mutex_unlock(&remote->lock);
    if (peer == PEER_UNKNOWN)
        rpc_client_start(remote->client, METHOD("GetStatus"), &nothing, learned, remote);
    else if (peer == PEER_OURS)
        meet(remote);
}

void remote_failed(struct remote *remote, const struct error *err)
{
    if (err->code == UNIMPLEMENTED || err->code == UNAVAILABLE)
        set_peer(remote, PEER_UNKNOWN); /* another process may serve the address */
}

void remote_receive(struct worker_link *link, int64_t step_id, const char *key,
                    rendezvous_receiver *receiver, void *arg)
{
    const struct str nothing = {0};
    struct remote *remote = (struct remote *)link;
    struct asked *asked = alloc_bytes(sizeof(*asked));
    enum peer peer;
    *asked = (struct asked){.base = {take, received},
                            .key = alloc_text(key),
                            .step_id = step_id,
                            .remote = remote,
                            .incoming.request_id = remote_request_id(remote),
                            .incoming.wants_turn = turn_wanted(),
                            .incoming.step_id = step_id,
                            .receiver = receiver,
                            .arg = arg,
                            .asked_us = (int64_t)clock_wall_us()};
    if (!waits(asked, &peer))
        send_request(asked, peer);
    else if (peer == PEER_UNKNOWN)
        rpc_client_start(remote->client, METHOD("GetStatus"), &nothing, learned, remote);
    else if (peer == PEER_OURS)
        go_on(remote);
}
