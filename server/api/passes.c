/* passes.c - how long the scheduler's passes take. */

#include "scheduler/passes.h"
#include "base/error.h"
#include "scheduler/loop.h"
#include "server/api/api.h"
#include "server/job.h"
#include "server/reply.h"
#include "server/request.h"

static double seconds(uint64_t us)
{
    return (double)us / 1e6;
}

static json_t *pass_json(const struct pass *pass)
{
    return json_pack("{s:o, s:f, s:f, s:f, s:i, s:i, s:i}", "at", job_time(pass->wall_us),
                     "seconds", seconds(pass->took_us), "decide_seconds",
                     seconds(pass->decide_us), "store_seconds", seconds(pass->store_us),
                     "messages", pass->messages, "decisions", pass->decisions, "nodes",
                     pass->nodes);
}

/* GET /api/v1/scheduler: its passes since the server started, and the longest of them. */
static bool passes_show(struct request *req, struct error *err)
{
    struct passes passes;
    loop_passes(req->services->loop, &passes);
    json_t *longest = json_array();
    for (int i = 0; i < passes.longest_count; i++)
        json_array_append_new(longest, pass_json(&passes.longest[i]));
    return reply_json(req, 200,
                      json_pack("{s:I, s:f, s:o}", "passes", (json_int_t)passes.count,
                                "seconds", seconds(passes.took_us), "longest", longest),
                      err);
}

const struct route passes_routes[] = {
    {"GET", "/api/v1/scheduler", AUTH_IN_PROJECT(ROLE_VIEWER), passes_show,
     "How long the scheduler's passes take", NULL, NULL, 200, "Scheduler"},
    {0},
};
