/* match.c - kinds of nodes, and what suits a need. */

#include "scheduler/match.h"
#include "base/alloc.h"

static const char *text_of(const char *text)
{
    return text ? text : "";
}

static bool labels_equal(const struct scheduler_label *a, int a_count,
                         const struct scheduler_label *b, int b_count)
{
    if (a_count != b_count)
        return false;
    for (int i = 0; i < a_count; i++) {
        if (strcmp(a[i].name, b[i].name) != 0 || strcmp(a[i].value, b[i].value) != 0)
            return false;
    }
    return true;
}

void match_release(struct match *match)
{
    for (int k = 0; k < match->count; k++) {
        free(match->kinds[k].gpu_type);
        for (int i = 0; i < match->kinds[k].labels_count; i++) {
            free((char *)match->kinds[k].labels[i].name);
            free((char *)match->kinds[k].labels[i].value);
        }
        free(match->kinds[k].labels);
    }
    free(match->kinds);
    *match = (struct match){0};
}

/* A new kind at the end. */
static void kind_add(struct match *match, const char *gpu_type, int64_t gpu_memory_bytes,
                     const struct scheduler_label *labels, int labels_count)
{
    match->kinds =
        alloc_grow(match->kinds, match->count, &match->capacity, sizeof(*match->kinds));
    struct match_kind *kind = &match->kinds[match->count++];
    kind->gpu_type = alloc_text(gpu_type);
    kind->gpu_memory_bytes = gpu_memory_bytes;
    kind->labels = alloc_array((size_t)labels_count, sizeof(*kind->labels));
    kind->labels_count = labels_count;
    for (int i = 0; i < labels_count; i++)
        kind->labels[i] =
            (struct scheduler_label){alloc_text(labels[i].name), alloc_text(labels[i].value)};
}

void match_copy(struct match *copy, const struct match *match)
{
    *copy = (struct match){0};
    for (int k = 0; k < match->count; k++) {
        const struct match_kind *kind = &match->kinds[k];
        kind_add(copy, kind->gpu_type, kind->gpu_memory_bytes, kind->labels,
                 kind->labels_count);
    }
}

int match_kind_of(struct match *match, const struct scheduler_node_info *node)
{
    for (int k = 0; k < match->count; k++) {
        const struct match_kind *kind = &match->kinds[k];
        if (strcmp(kind->gpu_type, text_of(node->gpu_type)) == 0 &&
            kind->gpu_memory_bytes == node->gpu_memory_bytes &&
            labels_equal(kind->labels, kind->labels_count, node->labels, node->labels_count))
            return k;
    }
    kind_add(match, text_of(node->gpu_type), node->gpu_memory_bytes, node->labels,
             node->labels_count);
    return match->count - 1;
}

static bool has_label(const struct match_kind *kind, const struct scheduler_label *label)
{
    for (int i = 0; i < kind->labels_count; i++) {
        if (strcmp(kind->labels[i].name, label->name) == 0)
            return strcmp(kind->labels[i].value, label->value) == 0;
    }
    return false;
}

static bool suits(const struct match_kind *kind, const struct scheduler_need *need)
{
    const char *type = text_of(need->gpu_type);
    if (*type && strcmp(type, kind->gpu_type) != 0)
        return false;
    int64_t part = need->gpu_share ? need->gpu_share : SCHEDULER_GPU_WHOLE;
    if (need->gpu_memory_bytes > kind->gpu_memory_bytes / SCHEDULER_GPU_WHOLE * part)
        return false;
    for (int i = 0; i < need->labels_count; i++) {
        if (!has_label(kind, &need->labels[i]))
            return false;
    }
    return true;
}

bool *match_need(const struct match *match, const struct scheduler_need *need)
{
    if (!*text_of(need->gpu_type) && !need->gpu_memory_bytes && !need->labels_count)
        return NULL;
    bool *by_kind = alloc_array((size_t)match->count, sizeof(*by_kind));
    for (int k = 0; k < match->count; k++)
        by_kind[k] = suits(&match->kinds[k], need);
    return by_kind;
}

bool match_same(const struct scheduler_need *a, const struct scheduler_need *b)
{
    return a->replicas == b->replicas && a->each.cpu_millis == b->each.cpu_millis &&
           a->each.memory_bytes == b->each.memory_bytes && a->each.gpus == b->each.gpus &&
           a->gpu_share == b->gpu_share && a->gpu_memory_bytes == b->gpu_memory_bytes &&
           strcmp(text_of(a->gpu_type), text_of(b->gpu_type)) == 0 &&
           labels_equal(a->labels, a->labels_count, b->labels, b->labels_count);
}

bool match_covers(const struct scheduler_need *a, const struct scheduler_need *b)
{
    if (a->each.cpu_millis > b->each.cpu_millis ||
        a->each.memory_bytes > b->each.memory_bytes || a->each.gpus > b->each.gpus)
        return false;
    if (a->gpu_share > b->gpu_share && !b->each.gpus)
        return false;
    if (a->gpu_memory_bytes &&
        (a->gpu_memory_bytes > b->gpu_memory_bytes || a->gpu_share != b->gpu_share))
        return false;
    if (*text_of(a->gpu_type) && strcmp(a->gpu_type, text_of(b->gpu_type)) != 0)
        return false;
    return !a->labels_count ||
           labels_equal(a->labels, a->labels_count, b->labels, b->labels_count);
}
