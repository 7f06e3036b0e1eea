/* scheduler_books.c - what is given of a node, and what it has left. */

#include "base/alloc.h"
#include "scheduler/internal.h"

static void move_gpus(struct node *node, const struct task *task, int sign)
{
    int part = task->gpu_share ? task->gpu_share : SCHEDULER_GPU_WHOLE;
    for (int g = 0; g < SCHEDULER_GPUS_MAX; g++) {
        if (!(task->gpu_mask >> g & 1))
            continue;
        int before = node->gpu_held[g];
        int after = before + sign * part;
        assert(after >= 0 && after <= SCHEDULER_GPU_WHOLE);
        node->gpu_held[g] = (uint16_t)after;
        node->used.gpus += (after > 0) - (before > 0);
    }
}

void scheduler_books_take(struct node *node, const struct task *task)
{
    node->used.cpu_millis += task->resources.cpu_millis;
    node->used.memory_bytes += task->resources.memory_bytes;
    move_gpus(node, task, 1);
    node->tasks_count++;
}

void scheduler_books_give(struct node *node, const struct task *task)
{
    node->used.cpu_millis -= task->resources.cpu_millis;
    node->used.memory_bytes -= task->resources.memory_bytes;
    move_gpus(node, task, -1);
    node->tasks_count--;
}

void scheduler_books_read(const struct node *node, bool empty, struct fit_node *out)
{
    *out = (struct fit_node){.id = node->id,
                             .kind = node->kind,
                             .free = node->capacity,
                             .gpus_away = node->gpus_away};
    out->gpus_count = node->capacity.gpus < SCHEDULER_GPUS_MAX ? (int)node->capacity.gpus
                                                               : SCHEDULER_GPUS_MAX;
    out->free.gpus = 0;
    for (int g = 0; g < out->gpus_count; g++) {
        bool away = node->gpus_away >> g & 1;
        int held = empty ? 0 : away ? SCHEDULER_GPU_WHOLE : node->gpu_held[g];
        out->gpu_free[g] = (uint16_t)(SCHEDULER_GPU_WHOLE - held);
        out->free.gpus += out->gpu_free[g] == SCHEDULER_GPU_WHOLE;
    }
    if (empty)
        return;
    out->free.cpu_millis -= node->used.cpu_millis;
    out->free.memory_bytes -= node->used.memory_bytes;
}

void scheduler_books_offers(const struct scheduler *s, struct fit *fit)
{
    fit_resize(fit, s->nodes_count);
    for (int n = 0; n < s->nodes_count; n++) {
        scheduler_books_read(s->nodes[n], false, &fit->nodes[n]);
        fit->nodes[n].offered = scheduler_node_offers(s->nodes[n]);
    }
    fit_ready(fit);
}

/* --- needs --- */

struct scheduler_need *scheduler_books_needs(const struct scheduler_need *needs, int count)
{
    struct scheduler_need *copies = alloc_array((size_t)count, sizeof(*copies));
    for (int i = 0; i < count; i++) {
        copies[i] = needs[i];
        copies[i].gpu_type = alloc_text(needs[i].gpu_type ? needs[i].gpu_type : "");
        struct scheduler_label *labels =
            alloc_array((size_t)needs[i].labels_count, sizeof(*labels));
        for (int l = 0; l < needs[i].labels_count; l++)
            labels[l] = (struct scheduler_label){alloc_text(needs[i].labels[l].name),
                                                 alloc_text(needs[i].labels[l].value)};
        copies[i].labels = labels;
    }
    return copies;
}

void scheduler_books_needs_free(struct scheduler_need *needs, int count)
{
    for (int i = 0; i < count; i++) {
        for (int l = 0; l < needs[i].labels_count; l++) {
            free((char *)needs[i].labels[l].name);
            free((char *)needs[i].labels[l].value);
        }
        free((struct scheduler_label *)needs[i].labels);
        free((char *)needs[i].gpu_type);
    }
    free(needs);
}

bool **scheduler_books_suits(const struct scheduler *s, const struct scheduler_need *needs,
                             int count)
{
    bool **suits = alloc_array((size_t)count, sizeof(*suits));
    for (int i = 0; i < count; i++)
        suits[i] = match_need(&s->match, &needs[i]);
    return suits;
}

void scheduler_books_suits_free(bool **suits, int count)
{
    for (int i = 0; suits && i < count; i++)
        free(suits[i]);
    free(suits);
}

struct fit_ask scheduler_books_ask(const struct job *job)
{
    return (struct fit_ask){.needs = job->needs,
                            .needs_count = job->needs_count,
                            .suits = job->suits,
                            .excluded = job->excluded,
                            .excluded_count = job->excluded_count,
                            .spread = job->spread};
}

void scheduler_books_asks(const struct scheduler *s, struct job *job)
{
    scheduler_books_suits_free(job->suits, job->needs_count);
    job->asks = scheduler_share_amount(job->needs, job->needs_count);
    job->suits = scheduler_books_suits(s, job->needs, job->needs_count);
    job->tasks_max = 0;
    for (int i = 0; i < job->needs_count; i++)
        job->tasks_max += job->needs[i].replicas;
}
