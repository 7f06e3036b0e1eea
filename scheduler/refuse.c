/* refuse.c - needs that no node could ever meet. */

#include "scheduler/refuse.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "scheduler/internal.h"

static bool at_role(const struct scheduler_need *need, const char *field, struct error *err,
                    const char *text)
{
    char pointer[100];
    snprintf(pointer, sizeof(pointer), "/tasks/%s%s%s", need->role, *field ? "/" : "", field);
    return error_at(err, pointer, INVALID, "%s", text);
}

/* The most of each resource that one node has. */
static struct scheduler_resources largest_of(const struct scheduler *s)
{
    struct scheduler_resources largest = {0};
    for (int i = 0; i < s->nodes_count; i++) {
        const struct scheduler_resources *has = &s->nodes[i]->capacity;
        if (has->cpu_millis > largest.cpu_millis)
            largest.cpu_millis = has->cpu_millis;
        if (has->memory_bytes > largest.memory_bytes)
            largest.memory_bytes = has->memory_bytes;
        if (has->gpus > largest.gpus)
            largest.gpus = has->gpus;
    }
    return largest;
}

static bool check_amounts(const struct scheduler *s, const struct scheduler_need *need,
                          struct error *err)
{
    struct scheduler_resources largest = largest_of(s);
    char text[160];
    if (need->each.gpus > largest.gpus) {
        snprintf(text, sizeof(text), "%lld GPUs on one node asked; the largest has %lld",
                 (long long)need->each.gpus, (long long)largest.gpus);
        return at_role(need, "gpus", err, text);
    }
    if (need->gpu_share && !largest.gpus)
        return at_role(need, "gpus", err, "a part of a GPU asked; no node has one");
    if (need->each.cpu_millis > largest.cpu_millis) {
        snprintf(text, sizeof(text),
                 "%lld.%03lld CPUs on one node asked; the largest has %lld.%03lld",
                 (long long)need->each.cpu_millis / 1000,
                 (long long)need->each.cpu_millis % 1000, (long long)largest.cpu_millis / 1000,
                 (long long)largest.cpu_millis % 1000);
        return at_role(need, "cpus", err, text);
    }
    if (need->each.memory_bytes > largest.memory_bytes) {
        snprintf(text, sizeof(text),
                 "%lld bytes of memory on one node asked; the largest has %lld",
                 (long long)need->each.memory_bytes, (long long)largest.memory_bytes);
        return at_role(need, "memory_bytes", err, text);
    }
    return true;
}

/* Whether any node would do if this were all that is asked of it. */
static bool some_kind(const struct scheduler *s, const struct scheduler_need *need)
{
    bool *by_kind = match_need(&s->match, need);
    bool some = !by_kind;
    for (int i = 0; i < s->nodes_count && !some; i++)
        some = by_kind[s->nodes[i]->kind];
    free(by_kind);
    return some;
}

/* "; there are: a, b" of what nodes have, each once. */
static void add_known(const struct scheduler *s, const char *label, struct str *text)
{
    int count = 0;
    const char *known[16];
    for (int i = 0; i < s->nodes_count && count < ARRAY_LEN(known); i++) {
        const struct match_kind *kind = &s->match.kinds[s->nodes[i]->kind];
        const char *value = label ? "" : kind->gpu_type;
        for (int l = 0; label && l < kind->labels_count; l++) {
            if (strcmp(kind->labels[l].name, label) == 0)
                value = kind->labels[l].value;
        }
        bool seen = !*value;
        for (int k = 0; k < count && !seen; k++)
            seen = strcmp(known[k], value) == 0;
        if (seen)
            continue;
        str_printf(text, "%s%.100s", count ? ", " : "; there are: ", value);
        known[count++] = value;
    }
    if (!count)
        str_add(text, "; there are none");
}

static bool check_type(const struct scheduler *s, const struct scheduler_need *need,
                       struct error *err)
{
    struct scheduler_need alone = {.gpu_type = need->gpu_type};
    if (some_kind(s, &alone))
        return true;
    struct str text = {0};
    str_printf(&text, "no node has GPUs of type '%.100s'", need->gpu_type);
    add_known(s, NULL, &text);
    bool ok = at_role(need, "gpu_type", err, str_text(&text));
    str_release(&text);
    return ok;
}

static bool check_gpu_memory(const struct scheduler *s, const struct scheduler_need *need,
                             struct error *err)
{
    struct scheduler_need alone = {.gpu_type = need->gpu_type,
                                   .gpu_share = need->gpu_share,
                                   .gpu_memory_bytes = need->gpu_memory_bytes};
    if (some_kind(s, &alone))
        return true;
    int64_t part = need->gpu_share ? need->gpu_share : SCHEDULER_GPU_WHOLE;
    int64_t largest = 0;
    alone.gpu_memory_bytes = 0;
    bool *by_kind = match_need(&s->match, &alone);
    for (int i = 0; i < s->nodes_count; i++) {
        int64_t here = s->match.kinds[s->nodes[i]->kind].gpu_memory_bytes;
        if ((!by_kind || by_kind[s->nodes[i]->kind]) && here > largest)
            largest = here;
    }
    free(by_kind);
    char text[160];
    snprintf(text, sizeof(text), "%lld bytes of memory on each GPU asked; the largest has %lld",
             (long long)need->gpu_memory_bytes,
             (long long)(largest / SCHEDULER_GPU_WHOLE * part));
    return at_role(need, "gpu_memory_bytes", err, text);
}

static bool check_labels(const struct scheduler *s, const struct scheduler_need *need,
                         struct error *err)
{
    for (int i = 0; i < need->labels_count; i++) {
        const struct scheduler_label *label = &need->labels[i];
        struct scheduler_need alone = {.labels = label, .labels_count = 1};
        if (some_kind(s, &alone))
            continue;
        char field[80];
        struct str text = {0};
        snprintf(field, sizeof(field), "node_labels/%.60s", label->name);
        str_printf(&text, "no node has %s=%s", label->name, label->value);
        add_known(s, label->name, &text);
        bool ok = at_role(need, field, err, str_text(&text));
        str_release(&text);
        return ok;
    }
    return true;
}

/* One task of the need, on nodes that are empty. */
static bool check_need(const struct scheduler *s, const struct scheduler_need *need,
                       struct error *err)
{
    if (!check_amounts(s, need, err) || !check_type(s, need, err) ||
        !check_gpu_memory(s, need, err) || !check_labels(s, need, err))
        return false;
    struct scheduler_need one = *need;
    one.replicas = 1;
    return scheduler_possible(s, &one, 1) ||
           at_role(need, "", err,
                   "no node has all of this together (CPUs, memory, GPUs, their type and "
                   "memory, labels), even when it is empty");
}

/* How many tasks of needs[which] would fit together with all of the others; 0: none. */
static int replicas_possible(const struct scheduler *s, const struct scheduler_need *needs,
                             int needs_count, int which)
{
    struct scheduler_need *fewer = alloc_array((size_t)needs_count, sizeof(*fewer));
    memcpy(fewer, needs, (size_t)needs_count * sizeof(*fewer));
    int fits = 0, too_many = needs[which].replicas;
    while (too_many - fits > 1) {
        fewer[which].replicas = fits + (too_many - fits) / 2;
        if (scheduler_possible(s, fewer, needs_count))
            fits = fewer[which].replicas;
        else
            too_many = fewer[which].replicas;
    }
    free(fewer);
    return fits;
}

/* Each of its tasks has a node, but all of them have none: says how many would, of the role
 * with the most. */
static bool refuse_together(const struct scheduler *s, const struct scheduler_need *needs,
                            int needs_count, int tasks_count, struct error *err)
{
    int most = 0;
    char hint[160] = "";
    for (int i = 1; i < needs_count; i++)
        most = needs[i].replicas > needs[most].replicas ? i : most;
    int fits = replicas_possible(s, needs, needs_count, most);
    if (fits)
        snprintf(hint, sizeof(hint), "; with %d of role %.100s in place of %d they would", fits,
                 needs[most].role, needs[most].replicas);
    return error_at(err, "/tasks", INVALID,
                    "its %d tasks do not fit on the %d node%s at once, even when all are "
                    "empty%s",
                    tasks_count, s->nodes_count, s->nodes_count == 1 ? "" : "s", hint);
}

bool refuse_check(const struct scheduler *s, const struct scheduler_need *needs,
                  int needs_count, struct error *err)
{
    int tasks_count = 0;
    if (!s->nodes_count)
        return true;
    for (int i = 0; i < needs_count; i++) {
        if (!check_need(s, &needs[i], err))
            return false;
        tasks_count += needs[i].replicas;
    }
    return scheduler_possible(s, needs, needs_count) ||
           refuse_together(s, needs, needs_count, tasks_count, err);
}
