/*
 * layout.c - packs the outputs of a plan into one arena.
 *
 * Shapes are often known only when a graph runs, so memory is planned by measurement: the first
 * run takes everything from the heap and notes size and sharing of each output.  Outputs that
 * share memory (in place, Reshape) form one region that lives until the last of them is used.
 *
 * Large regions are placed by size, each at the lowest offset where it overlaps no region that
 * lives at the same time.  Small ones come from lists of equal size, the last freed first,
 * which keeps them in the cache and takes no time however many there are.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "runtime/internal.h"

enum { LARGE_BYTES = 4096, LARGE_MAX = 4000 };

struct region {
    int value; /* the root */
    int first; /* step that makes it */
    int last;  /* step that uses it last */
    size_t size;
    int64_t offset;
    struct region *next_free; /* in the list of its size */
};

struct packer {
    struct plan *plan;
    const struct frame *frame;
    int *root;      /* by value: whose memory it is, -1: nobody's of ours */
    int *region_of; /* by root value */
    struct region *regions;
    int regions_count;
};

static bool is_plain(const struct plan *plan, int value)
{
    int type = *plan->types_of_value[value];
    return !dtype_is_ref(type) && (BIT(dtype_base(type)) & DTYPES_PLAIN);
}

/* Follows what each step was seen to do; steps come after those that made their inputs. */
static void find_roots(struct packer *packer)
{
    const struct plan *plan = packer->plan;
    for (int v = 0; v < plan->values_count; v++)
        packer->root[v] = -1;
    for (int s = 0; s < plan->steps_count; s++) {
        const struct plan_step *step = &plan->steps[s];
        for (int i = 0; i < step->node->outputs_count; i++) {
            int value = step->out_first + i;
            int seen = packer->frame->slots[value].seen;
            if (!is_plain(plan, value))
                continue;
            if (seen == SEEN_OWN)
                packer->root[value] = value;
            else if (seen >= 0)
                packer->root[value] = packer->root[plan->inputs[step->in_first + seen]];
        }
    }
}

static void find_regions(struct packer *packer)
{
    struct plan *plan = packer->plan;
    bool *pinned = alloc_array((size_t)plan->values_count, sizeof(*pinned));
    for (int v = plan->owned_first; v < plan->values_count; v++)
        if (packer->root[v] >= 0 && plan->fetched[v])
            pinned[packer->root[v]] = true;
    for (int v = plan->owned_first; v < plan->values_count; v++) {
        int root = packer->root[v];
        if (root < 0 || pinned[root])
            continue;
        if (root == v) {
            packer->region_of[v] = packer->regions_count;
            size_t size = plan->needed[v] ? plan->needed[v] : 1;
            packer->regions[packer->regions_count++] = (struct region){
                .value = v,
                .first = plan->defined_by[v],
                .last = plan->last_use[v],
                .size = (size + TENSOR_ALIGN - 1) / TENSOR_ALIGN * TENSOR_ALIGN,
            };
        }
        struct region *region = &packer->regions[packer->region_of[root]];
        if (plan->last_use[v] > region->last)
            region->last = plan->last_use[v];
    }
    free(pinned);
}

static int compare_sizes(const void *a, const void *b)
{
    const struct region *x = *(struct region *const *)a;
    const struct region *y = *(struct region *const *)b;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return x->value - y->value; /* equal plans, equal layouts */
}

static int compare_offsets(const void *a, const void *b)
{
    const struct region *x = *(struct region *const *)a;
    const struct region *y = *(struct region *const *)b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* The lowest place beside those that live at the same time; `near` is room for them. */
static int64_t lowest_place(struct region **placed, int count, const struct region *region,
                            struct region **near)
{
    int near_count = 0;
    for (int i = 0; i < count; i++)
        if (placed[i]->first <= region->last && region->first <= placed[i]->last)
            near[near_count++] = placed[i];
    qsort(near, (size_t)near_count, sizeof(struct region *), compare_offsets);
    int64_t offset = 0;
    for (int i = 0; i < near_count; i++) {
        if (offset + (int64_t)region->size <= near[i]->offset)
            break;
        int64_t end = near[i]->offset + (int64_t)near[i]->size;
        if (end > offset)
            offset = end;
    }
    return offset;
}

static int place_large(struct packer *packer, struct region **sorted, int64_t *end)
{
    int count = 0;
    struct region **near = alloc_array(LARGE_MAX, sizeof(struct region *));
    while (count < packer->regions_count && count < LARGE_MAX &&
           sorted[count]->size >= LARGE_BYTES) {
        struct region *region = sorted[count];
        region->offset = lowest_place(sorted, count, region, near);
        if (region->offset + (int64_t)region->size > *end)
            *end = region->offset + (int64_t)region->size;
        count++;
    }
    free(near);
    return count;
}

static int compare_starts(const void *a, const void *b)
{
    const struct region *x = *(struct region *const *)a;
    const struct region *y = *(struct region *const *)b;
    return x->first != y->first ? x->first - y->first : x->value - y->value;
}

static int compare_ends(const void *a, const void *b)
{
    const struct region *x = *(struct region *const *)a;
    const struct region *y = *(struct region *const *)b;
    return x->last != y->last ? x->last - y->last : x->value - y->value;
}

/* Sizes in classes, at most an eighth larger than asked for: 64, 128 ... 1024, 1152 ... */
static size_t class_bytes(size_t size, int *class)
{
    size_t units = (size + TENSOR_ALIGN - 1) / TENSOR_ALIGN;
    int shift = 0;
    while (units >> shift > 15)
        shift++;
    size_t rounded = (units + (UINT64_C(1) << shift) - 1) >> shift;
    if (rounded > 15) {
        shift++;
        rounded = 8;
    }
    *class = shift * 16 + (int)rounded;
    return (rounded << shift) * TENSOR_ALIGN;
}

/* Goes through time: gives back what has ended, takes the last given back of the class. */
static void place_small(struct region **regions, int count, int64_t *end)
{
    enum { CLASSES = 48 * 16 };
    struct region *free_list[CLASSES] = {0};
    struct region **by_end = alloc_array((size_t)count, sizeof(struct region *));
    memcpy(by_end, regions, (size_t)count * sizeof(struct region *));
    qsort(regions, (size_t)count, sizeof(struct region *), compare_starts);
    qsort(by_end, (size_t)count, sizeof(struct region *), compare_ends);
    int ended = 0;
    for (int i = 0; i < count; i++) {
        int class;
        for (; ended < count && by_end[ended]->last < regions[i]->first; ended++) {
            class_bytes(by_end[ended]->size, &class);
            by_end[ended]->next_free = free_list[class];
            free_list[class] = by_end[ended];
        }
        size_t bytes = class_bytes(regions[i]->size, &class);
        if (free_list[class]) {
            regions[i]->offset = free_list[class]->offset;
            free_list[class] = free_list[class]->next_free;
        } else {
            regions[i]->offset = *end;
            *end += (int64_t)bytes;
        }
    }
    free(by_end);
}

static size_t pack(struct packer *packer)
{
    int count = packer->regions_count;
    struct region **sorted = alloc_array((size_t)count, sizeof(struct region *));
    for (int i = 0; i < count; i++)
        sorted[i] = &packer->regions[i];
    qsort(sorted, (size_t)count, sizeof(struct region *), compare_sizes);
    int64_t end = 0;
    int large = place_large(packer, sorted, &end);
    place_small(sorted + large, count - large, &end);
    free(sorted);
    return (size_t)end;
}

void layout_measure_locked(struct plan *plan, const struct frame *frame)
{
    size_t count = (size_t)plan->values_count;
    if (!plan->layout) {
        plan->layout = alloc_array(count, sizeof(*plan->layout));
        plan->needed = alloc_array(count, sizeof(*plan->needed));
    }
    for (size_t v = 0; v < count; v++)
        if (frame->slots[v].needed > plan->needed[v])
            plan->needed[v] = frame->slots[v].needed;

    struct packer packer = {
        .plan = plan,
        .frame = frame,
        .root = alloc_array(count, sizeof(int)),
        .region_of = alloc_array(count, sizeof(int)),
        .regions = alloc_array(count, sizeof(struct region)),
    };
    find_roots(&packer);
    find_regions(&packer);
    plan->arena_size = pack(&packer);

    for (size_t v = 0; v < count; v++)
        plan->layout[v] = (struct place_in_arena){.offset = -1, .alias = -1};
    for (int i = 0; i < packer.regions_count; i++)
        plan->layout[packer.regions[i].value] = (struct place_in_arena){
            .offset = packer.regions[i].offset, .size = packer.regions[i].size, .alias = -1};
    for (int v = plan->owned_first; v < plan->values_count; v++) {
        int root = packer.root[v];
        if (root >= 0 && root != v && plan->layout[root].offset >= 0)
            plan->layout[v].alias = frame->slots[v].seen;
    }
    plan->measured++;
    plan->layout_version = plan->measured;
    free(packer.root);
    free(packer.region_of);
    free(packer.regions);
}
