/* workspace.c - a list of what is lent to nobody; see workspace.h. */

#include "runtime/workspace.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "runtime/pages.h"
#include "runtime/tensor.h"

void workspace_pool_init(struct workspace_pool *all)
{
    *all = (struct workspace_pool){0};
    pthread_mutex_init(&all->lock, NULL);
}

static void workspace_free(struct workspace *workspace)
{
    free(workspace->memory);
    free(workspace);
}

void workspace_pool_release(struct workspace_pool *all)
{
    while (all->idle) {
        struct workspace *workspace = all->idle;
        all->idle = workspace->next;
        workspace_free(workspace);
    }
    pthread_mutex_destroy(&all->lock);
}

/* Takes the smallest that is large enough out of the list, or else the largest. */
static struct workspace *best_idle(struct workspace_pool *all, size_t size)
{
    struct workspace **best = NULL;
    for (struct workspace **at = &all->idle; *at; at = &(*at)->next) {
        bool fits = (*at)->size >= size, best_fits = best && (*best)->size >= size;
        if (!best || (fits && !best_fits) ||
            (fits == best_fits && fits == ((*at)->size < (*best)->size)))
            best = at;
    }
    struct workspace *found = best ? *best : NULL;
    if (found)
        *best = found->next;
    return found;
}

struct workspace *workspace_take(struct workspace_pool *all, size_t size)
{
    pthread_mutex_lock(&all->lock);
    struct workspace *workspace = best_idle(all, size);
    pthread_mutex_unlock(&all->lock);
    if (workspace && workspace->size >= size)
        return workspace;
    workspace_drop(all, workspace); /* too small: another takes its place */
    size_t rounded = (size + TENSOR_ALIGN - 1) / TENSOR_ALIGN * TENSOR_ALIGN;
    workspace = alloc_bytes(sizeof(*workspace));
    *workspace = (struct workspace){.memory = pages_new(rounded), .size = rounded};
    if (!workspace->memory) {
        workspace_free(workspace);
        return NULL;
    }
    pthread_mutex_lock(&all->lock);
    all->bytes += (int64_t)rounded;
    pthread_mutex_unlock(&all->lock);
    return workspace;
}

void workspace_drop(struct workspace_pool *all, struct workspace *workspace)
{
    if (!workspace)
        return;
    pthread_mutex_lock(&all->lock);
    all->bytes -= (int64_t)workspace->size;
    pthread_mutex_unlock(&all->lock);
    workspace_free(workspace);
}

void workspace_give(struct workspace_pool *all, struct workspace *workspace)
{
    if (!workspace)
        return;
    pthread_mutex_lock(&all->lock);
    workspace->next = all->idle;
    all->idle = workspace;
    pthread_mutex_unlock(&all->lock);
}

int64_t workspace_pool_bytes(const struct workspace_pool *all)
{
    pthread_mutex_lock((pthread_mutex_t *)&all->lock);
    int64_t bytes = all->bytes;
    pthread_mutex_unlock((pthread_mutex_t *)&all->lock);
    return bytes;
}
