/*
 * session_play.c - recorded calls, made again in their order.
 *
 * DESIGN: a call begins when all that began before it have begun, and all that had ended before
 * it have ended; so what let others go when it was recorded does so again.  One thread starts
 * the calls, the threads of the clients tell their ends.
 */

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "proto/rpc.h"
#include "tests/interop/sessions/sessions.h"

enum { ANSWER_S = 30, BEFORE_CANCEL_US = 50000, PAUSE_US = 20000 };

struct replayed {
    struct replay *replay;
    const Call *call;
    char session[17]; /* recorded */
    struct rpc_client *client;
    bool concurrent;              /* with others, when it was recorded */
    bool begun, ended, looked_at; /* `ended` is guarded by the replay's lock */
    struct str response;
    bool failed;
    struct error status; /* when failed */
};

struct replay {
    const struct session_player *player;
    const struct session_calls *calls;
    struct replayed *all;
    char left_out[8][17]; /* sessions that need their client's files */
    int left_out_count;
    pthread_mutex_t lock; /* guards: `ended` and what was answered */
    pthread_cond_t changed;
};

static void ended(void *arg, const struct str *response, const struct error *err)
{
    struct replayed *one = arg;
    pthread_mutex_lock(&one->replay->lock);
    one->ended = true;
    one->failed = err;
    if (err)
        one->status = *err;
    else
        str_add_bytes(&one->response, response->data, response->size);
    pthread_cond_signal(&one->replay->changed);
    pthread_mutex_unlock(&one->replay->lock);
}

/* --- files that clients wrote or damaged themselves are not recorded --- */

static bool is_left_out(const struct replayed *one)
{
    for (int i = 0; i < one->replay->left_out_count; i++)
        if (*one->session && !strcmp(one->session, one->replay->left_out[i]))
            return true;
    return false;
}

static bool needs_files(const struct error *difference)
{
    return strstr(difference->text, " No such file or directory") ||
           strstr(difference->text, "Failed to find any matching files for ") ||
           strstr(difference->text, "not DATA_LOSS");
}

static void leave_out(struct replay *replay, const char *session)
{
    if (replay->left_out_count < ARRAY_LEN(replay->left_out))
        snprintf(replay->left_out[replay->left_out_count++], 17, "%s", session);
    for (int i = 0; i < replay->calls->count; i++)
        if (replay->all[i].begun && is_left_out(&replay->all[i]))
            rpc_client_cancel_started(replay->all[i].client, &replay->all[i]);
}

/* --- one call --- */

static bool await_end(struct replayed *one, struct error *err)
{
    struct replay *replay = one->replay;
    struct timespec end;
    int result = 0;
    if (one->call->status == CALL_CANCELLED) {
        usleep(BEFORE_CANCEL_US); /* it waits by now for what it waited for then */
        rpc_client_cancel_started(one->client, one);
    }
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += ANSWER_S;
    pthread_mutex_lock(&replay->lock);
    while (!one->ended && !result)
        result = pthread_cond_timedwait(&replay->changed, &replay->lock, &end);
    pthread_mutex_unlock(&replay->lock);
    return one->ended || fail(err, DEADLINE, "has no answer");
}

static bool look_at(struct replayed *one, struct error *err)
{
    const struct session_player *player = one->replay->player;
    one->looked_at = true;
    return player->compare(player->self, one->call, &one->response,
                           one->failed ? &one->status : NULL, one->concurrent, err);
}

static void begin(struct replayed *one, struct session_totals *totals)
{
    struct str request = {0};
    struct error err;
    one->begun = true;
    if (is_left_out(one) && strcmp(session_calls_method(one->call), "CloseSession") != 0) {
        one->ended = one->looked_at = true;
        totals->left_out++;
        return;
    }
    const struct session_player *player = one->replay->player;
    if (player->request(player->self, one->call, &request, &err)) {
        rpc_client_start(one->client, one->call->method, &request, ended, one);
    } else {
        one->looked_at = one->ended = true;
        printf("FAIL a request cannot be read: %s\n", err.text);
        totals->failed++;
    }
    str_release(&request);
}

static bool end(struct replayed *one, int number, struct session_totals *totals)
{
    struct error err;
    if (one->looked_at)
        return true;
    bool came = await_end(one, &err), ok = came && look_at(one, &err);
    if (came && !ok && !is_left_out(one) && needs_files(&err))
        leave_out(one->replay, one->session);
    if (came && !ok && is_left_out(one)) {
        totals->left_out++;
        return true;
    }
    if (!ok)
        printf("FAIL call %d, %s: %s\n", number, session_calls_method(one->call), err.text);
    totals->passed += ok;
    totals->failed += !ok;
    return came;
}

/* --- all of them --- */

static bool make_calls(struct replay *replay, struct session_totals *totals)
{
    int oldest = 0; /* all before it were looked at */
    for (int i = 0; i < replay->calls->count; i++) {
        struct replayed *one = &replay->all[i];
        while (oldest < i && replay->all[oldest].looked_at)
            oldest++;
        for (int k = oldest; k < i; k++)
            if (session_calls_before(replay->all[k].call, one->call) &&
                !end(&replay->all[k], k, totals))
                return false;
        for (int k = oldest; k < i; k++)
            if (!replay->all[k].looked_at)
                one->concurrent = replay->all[k].concurrent = true;
        if (one->concurrent && one->call->time - replay->calls->calls[i - 1]->time > 0.02)
            usleep(PAUSE_US); /* what began before has got somewhere, as then */
        begin(one, totals);
    }
    for (int k = oldest; k < replay->calls->count; k++)
        if (!end(&replay->all[k], k, totals))
            return false;
    return true;
}

bool session_play(const struct session_player *player, const struct session_calls *calls,
                  struct session_totals *totals, struct error *err)
{
    struct replay replay = {.player = player,
                            .calls = calls,
                            .all = alloc_array((size_t)calls->count, sizeof(*replay.all)),
                            .lock = PTHREAD_MUTEX_INITIALIZER,
                            .changed = PTHREAD_COND_INITIALIZER};
    for (int i = 0; i < calls->count; i++) {
        const Call *call = calls->calls[i];
        replay.all[i] = (struct replayed){
            .replay = &replay, .call = call, .client = player->client(player->self, call)};
        session_map_handle(call, replay.all[i].session);
    }
    bool ok = make_calls(&replay, totals);
    for (int i = 0; i < calls->count; i++) {
        if (!replay.all[i].ended && replay.all[i].begun)
            rpc_client_cancel_started(replay.all[i].client, &replay.all[i]);
        pthread_mutex_lock(&replay.lock);
        while (replay.all[i].begun && !replay.all[i].ended)
            pthread_cond_wait(&replay.changed, &replay.lock);
        pthread_mutex_unlock(&replay.lock);
        str_release(&replay.all[i].response);
    }
    free(replay.all);
    return ok || fail(err, DEADLINE, "the calls behind one that has no answer are left out");
}
