/* rpc_socket_wait.c - calls over a socket that are waited for. */

#include <stdlib.h>

#include "base/error.h"
#include "proto/channel.h"
#include "proto/rpc_socket.h"

struct waited {
    struct str answer;
    struct error err;
    pthread_mutex_t lock; /* guards: is_over */
    pthread_cond_t changed;
    bool is_over;
};

static void done(void *arg, const struct str *response, const struct error *err)
{
    struct waited *waited = arg;
    if (err)
        waited->err = *err;
    else
        str_add_bytes(&waited->answer, response->data, response->size);
    pthread_mutex_lock(&waited->lock);
    waited->is_over = true;
    pthread_cond_signal(&waited->changed);
    pthread_mutex_unlock(&waited->lock);
}

/* False: it was late. */
static bool wait_for(struct waited *waited, const struct timespec *until)
{
    int late = 0;
    pthread_mutex_lock(&waited->lock);
    while (!waited->is_over && !late)
        late = until ? pthread_cond_timedwait(&waited->changed, &waited->lock, until)
                     : pthread_cond_wait(&waited->changed, &waited->lock);
    bool over = waited->is_over;
    pthread_mutex_unlock(&waited->lock);
    return over;
}

bool rpc_socket_wait_call(struct rpc_client *client, const char *path,
                          const struct str *request, struct str *response, int timeout_ms,
                          struct error *err)
{
    struct waited waited = {.err.code = OK};
    struct timespec until = rpc_deadline(timeout_ms);
    pthread_mutex_init(&waited.lock, NULL);
    rpc_cond_init(&waited.changed);
    rpc_socket_client_start(client, path, request, done, &waited);
    channel_send_kept();
    if (!wait_for(&waited, &until)) {
        rpc_socket_client_cancel_started(client, &waited);
        bool over = wait_for(&waited, NULL);
        assert(over);
        if (waited.err.code == CANCELLED)
            (void)fail(&waited.err, DEADLINE, "no answer from %s within %d ms",
                       rpc_socket_client_shown(client), timeout_ms);
    }
    pthread_cond_destroy(&waited.changed);
    pthread_mutex_destroy(&waited.lock);
    if (waited.err.code != OK) {
        *err = waited.err;
        str_release(&waited.answer);
        return false;
    }
    str_release(response);
    *response = waited.answer;
    return true;
}
