/*
 * loop_check.c - whether a job could ever run.
 *
 * DESIGN: who submits many jobs asks this of the same needs again and again, and each question
 * would wake the scheduler's thread.  So a yes is remembered until a node joins or changes; a
 * no, which is to name what there is, is not.
 */

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "scheduler/loop_state.h"
#include "scheduler/refuse.h"

/* The needs as a text; owned. */
static char *needs_text(const struct db_need *needs, int count)
{
    struct str text = {0};
    for (int i = 0; i < count; i++) {
        const struct db_need *need = &needs[i];
        str_printf(&text, "%d %lld %lld %d %d %lld %zu:%s %s\n", need->replicas,
                   (long long)need->cpu_millis, (long long)need->memory_bytes, need->gpus,
                   need->gpu_share, (long long)need->gpu_memory_bytes,
                   need->gpu_type ? strlen(need->gpu_type) : 0,
                   need->gpu_type ? need->gpu_type : "",
                   need->node_labels ? need->node_labels : "");
    }
    char *copy = alloc_text(str_text(&text));
    str_release(&text);
    return copy;
}

static bool is_remembered_locked(const struct loop *loop, const char *text)
{
    for (int i = 0; i < LOOP_CHECKED; i++) {
        if (loop->checked[i] && strcmp(loop->checked[i], text) == 0)
            return true;
    }
    return false;
}

static bool is_remembered(struct loop *loop, const char *text)
{
    pthread_mutex_lock(&loop->lock);
    bool is = is_remembered_locked(loop, text);
    pthread_mutex_unlock(&loop->lock);
    return is;
}

/* Takes the text. */
static void remember(struct loop *loop, char *text)
{
    pthread_mutex_lock(&loop->lock);
    if (!is_remembered_locked(loop, text)) {
        char *oldest = loop->checked[loop->checked_next];
        loop->checked[loop->checked_next] = text;
        loop->checked_next = (loop->checked_next + 1) % LOOP_CHECKED;
        text = oldest;
    }
    pthread_mutex_unlock(&loop->lock);
    free(text);
}

void loop_check_forget(struct loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    for (int i = 0; i < LOOP_CHECKED; i++) {
        free(loop->checked[i]);
        loop->checked[i] = NULL;
    }
    pthread_mutex_unlock(&loop->lock);
}

bool loop_check_finish(struct loop *loop, const struct loop_request *request)
{
    const struct scheduler_need *needs =
        loop_load_needs(request->needs, request->needs_count, request->arena);
    if (!refuse_check(loop->scheduler, needs, request->needs_count, request->err))
        return false;
    remember(loop, needs_text(request->needs, request->needs_count));
    return true;
}

bool loop_check_engine(struct loop *loop, const char *queue, const struct db_need *needs,
                       int needs_count, struct arena *arena)
{
    struct error unread;
    struct scheduler *copy;
    uint64_t now_us;
    if (!loop->engine.possible || !loop_copy(loop, &copy, &now_us, &unread))
        return false;
    bool could = loop->engine.possible(loop->engine.self, copy, queue,
                                       loop_load_needs(needs, needs_count, arena), needs_count);
    scheduler_free(copy);
    return could;
}

bool loop_check(struct loop *loop, const char *queue, const struct db_need *needs,
                int needs_count, struct error *err)
{
    char *text = needs_text(needs, needs_count);
    bool known = is_remembered(loop, text);
    free(text);
    if (known)
        return true;
    struct loop_request request = {.kind = LOOP_CHECK,
                                   .needs = needs,
                                   .needs_count = needs_count,
                                   .arena = arena_new(),
                                   .err = err};
    bool ok = loop_request_run(loop, &request) ||
              (err->code == INVALID &&
               loop_check_engine(loop, queue, needs, needs_count, request.arena));
    arena_free(request.arena);
    return ok;
}
