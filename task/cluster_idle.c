/* cluster_idle.c - see cluster_idle.h. */

#include "task/cluster_idle.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "runtime/master/master.h"
#include "task/cluster_spec.h"

#define METHOD                                                                                 \
    "/trainyard.Cluster/Idle" /* of an empty message; answers milliseconds, as text */
#define ANSWER_MS 2000
#define ANSWER_BYTES 64

struct cluster_idle {
    struct master *master;
    struct rpc_client **others;
    int others_count;
};

static void serve_idle(void *self, struct rpc_call *call)
{
    const struct cluster_idle *idle = self;
    char text[ANSWER_BYTES];
    int size = snprintf(text, sizeof(text), "%llu",
                        (unsigned long long)master_idle_us(idle->master) / 1000);
    rpc_call_reply(call, text, (size_t)size);
}

const struct rpc_method cluster_idle_methods[] = {{METHOD, serve_idle}, {0}};

struct cluster_idle *cluster_idle_new(const struct cluster_spec *spec,
                                      const struct rpc_tls *tls, struct master *master,
                                      struct error *err)
{
    struct cluster_idle *idle = alloc_bytes(sizeof(*idle));
    idle->master = master;
    idle->others = alloc_array((size_t)cluster_spec_tasks(spec), sizeof(*idle->others));
    for (int j = 0; j < spec->jobs_count; j++) {
        for (int t = 0; t < spec->jobs[j].tasks_count; t++) {
            const struct rpc_client_options options = {.address = spec->jobs[j].addresses[t],
                                                       .message_bytes_max = ANSWER_BYTES,
                                                       .tls = tls};
            if (!strcmp(spec->jobs[j].name, spec->job) && t == spec->task)
                continue;
            struct rpc_client *client = rpc_client_new(&options, err);
            if (!client) {
                cluster_idle_free(idle);
                return NULL;
            }
            idle->others[idle->others_count++] = client;
        }
    }
    return idle;
}

void cluster_idle_free(struct cluster_idle *idle)
{
    if (!idle)
        return;
    for (int i = 0; i < idle->others_count; i++)
        rpc_client_free(idle->others[i]);
    free(idle->others);
    free(idle);
}

static bool is_over(struct rpc_client *client, uint64_t limit_ms)
{
    struct error gone;
    struct str request = {0}, answer = {0};
    bool over = !rpc_client_call(client, METHOD, &request, &answer, ANSWER_MS, &gone) ||
                strtoull(str_text(&answer), NULL, 10) >= limit_ms;
    str_release(&answer);
    return over;
}

bool cluster_idle_is_over(struct cluster_idle *idle, int64_t seconds)
{
    uint64_t limit_ms = (uint64_t)seconds * 1000;
    bool over = master_idle_us(idle->master) / 1000 >= limit_ms;
    for (int i = 0; over && i < idle->others_count; i++)
        over = is_over(idle->others[i], limit_ms);
    return over;
}
