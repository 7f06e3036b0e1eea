/* pilots.c - which pilots an engine is asked for, and which are let go. */

#include "scheduler/engines/pilots.h"
#include "base/alloc.h"

#define DOUBLED_MAX 16     /* times that the wait after a failure doubles */
#define UNSURE_US 30000000 /* a job that may have been submitted is looked for so long */
#define TOGETHER 16        /* are submitted in one step */

enum state {
    FREE,
    ASKED,   /* an order to submit is out */
    UNSURE,  /* ... and nobody knows whether the engine has taken it */
    WAITS,   /* in the engine's queue */
    STARTED, /* runs, but its agent has not joined */
    JOINED,
    LEAVING, /* cancelled: the engine still knows it */
};

struct place {
    char name[PILOTS_NAME_BYTES];
    int queue;
    enum state state;
    char id[PILOTS_ID_BYTES];
    char says[PILOTS_SAYS_BYTES];
    uint64_t since_us; /* in this state */
    uint64_t idle_us;  /* JOINED: without tasks since; 0: it has some */
    bool drained;      /* by us, to let it go */
};

struct queue {
    struct pilots_bounds bounds;
    int failures; /* in a row */
    uint64_t retry_us;
    char trouble[400]; /* what the last failure was */
};

struct pilots {
    char what[40];
    uint64_t retry_us;
    uint64_t retry_max_us;
    struct queue *queues;
    int queues_count;
    struct place *places;
    int places_count;
};

void pilots_orders_release(struct pilots_orders *orders)
{
    free(orders->list);
    *orders = (struct pilots_orders){0};
}

struct pilots *pilots_new(const struct pilots_options *options)
{
    struct pilots *p = alloc_bytes(sizeof(*p));
    snprintf(p->what, sizeof(p->what), "%s", options->what);
    p->retry_us = options->retry_us;
    p->retry_max_us = options->retry_max_us;
    p->queues_count = options->bounds_count;
    p->queues = alloc_array((size_t)p->queues_count, sizeof(*p->queues));
    p->places = alloc_array(PILOTS_PLACES_MAX, sizeof(*p->places));
    for (int q = 0; q < p->queues_count; q++) {
        p->queues[q].bounds = options->bounds[q];
        for (int i = 0; i < options->bounds[q].max; i++) {
            assert(p->places_count < PILOTS_PLACES_MAX);
            struct place *place = &p->places[p->places_count++];
            place->queue = q;
            snprintf(place->name, sizeof(place->name), "%.20s-%.90s-%d", options->prefix,
                     options->bounds[q].queue, i + 1);
        }
    }
    return p;
}

void pilots_free(struct pilots *p)
{
    if (!p)
        return;
    free(p->queues);
    free(p->places);
    free(p);
}

static struct pilots_order *order(struct pilots_orders *orders, enum pilots_order_kind kind,
                                  const struct pilots *p, const struct place *place)
{
    orders->list =
        alloc_grow(orders->list, orders->count, &orders->capacity, sizeof(*orders->list));
    struct pilots_order *made = &orders->list[orders->count++];
    *made = (struct pilots_order){
        .kind = kind, .place = (int)(place - p->places), .queue = place->queue};
    snprintf(made->name, sizeof(made->name), "%s", place->name);
    snprintf(made->id, sizeof(made->id), "%s", place->id);
    return made;
}

static void enter(struct place *place, enum state state, uint64_t now_us)
{
    if (place->state == state)
        return;
    place->state = state;
    place->since_us = now_us;
    place->idle_us = 0;
}

static void leave(struct place *place, uint64_t now_us)
{
    enter(place, FREE, now_us);
    place->id[0] = place->says[0] = 0;
    place->drained = false;
}

static void failed(struct pilots *p, struct place *place, const char *why, uint64_t now_us)
{
    struct queue *queue = &p->queues[place->queue];
    uint64_t wait_us = p->retry_us
                       << (queue->failures < DOUBLED_MAX ? queue->failures : DOUBLED_MAX);
    queue->failures++;
    queue->retry_us = now_us + (wait_us < p->retry_max_us ? wait_us : p->retry_max_us);
    snprintf(queue->trouble, sizeof(queue->trouble), "%s", why);
}

/* --- what is seen --- */

/* The engine's job of this name that lives, or else one that has ended; NULL. */
static const struct pilots_seen *seen_of(const struct place *place,
                                         const struct pilots_view *view)
{
    const struct pilots_seen *found = NULL;
    for (int i = 0; i < view->seen_count; i++) {
        const struct pilots_seen *seen = &view->seen[i];
        if (strcmp(seen->name, place->name) != 0)
            continue;
        bool same = strcmp(seen->id, place->id) == 0;
        if (seen->phase == PILOTS_ENDED) {
            if (same && !found)
                found = seen;
        } else if (!found || found->phase == PILOTS_ENDED || same) {
            found = seen;
        }
    }
    return found;
}

static const struct pilots_node *node_of(const struct place *place,
                                         const struct pilots_view *view)
{
    for (int i = 0; i < view->nodes_count; i++)
        if (strcmp(view->nodes[i].name, place->name) == 0)
            return &view->nodes[i];
    return NULL;
}

/* Two of one name: the engine took one of which we thought that it had not. */
static void cancel_doubles(struct pilots *p, const struct place *place,
                           const struct pilots_view *view, struct pilots_orders *orders)
{
    for (int i = 0; i < view->seen_count; i++) {
        const struct pilots_seen *seen = &view->seen[i];
        if (seen->phase != PILOTS_ENDED && strcmp(seen->name, place->name) == 0 &&
            strcmp(seen->id, place->id) != 0)
            snprintf(order(orders, PILOTS_CANCEL, p, place)->id, PILOTS_ID_BYTES, "%s",
                     seen->id);
    }
}

/* Its node can have no agent any more. */
static void node_gone(struct pilots *p, struct place *place, const struct pilots_node *node,
                      const char *text, struct pilots_orders *orders)
{
    order(orders, PILOTS_FORGET, p, place);
    if (!node)
        return;
    if (!node->lost) {
        struct pilots_order *gone = order(orders, PILOTS_GONE, p, place);
        gone->node = node->id;
        snprintf(gone->text, sizeof(gone->text), "%s", text);
    }
    if (node->draining) {
        struct pilots_order *undrain = order(orders, PILOTS_DRAIN, p, place);
        undrain->node = node->id;
    }
}

/* The engine runs no job for the place. */
static void ended(struct pilots *p, struct place *place, const struct pilots_seen *seen,
                  const struct pilots_node *node, uint64_t now_us, struct pilots_orders *orders)
{
    char text[400];
    if (place->state == FREE) {
        /* Of a server before us; it ended while none was there. */
        if (node && !node->lost) {
            snprintf(text, sizeof(text), "its %s is gone", p->what);
            node_gone(p, place, node, text, orders);
        }
        return;
    }
    if (place->state == UNSURE && now_us - place->since_us < UNSURE_US)
        return;
    snprintf(text, sizeof(text), "its %s %s has ended: %.200s", p->what, place->id,
             seen && seen->says[0] ? seen->says : "the engine does not know it any more");
    node_gone(p, place, node, text, orders);
    if (place->state == WAITS || place->state == STARTED) {
        snprintf(text, sizeof(text), "%s %s ended before its agent joined: %.200s", p->what,
                 place->id, seen && seen->says[0] ? seen->says : "nobody knows why");
        failed(p, place, text, now_us);
    }
    leave(place, now_us);
}

static void lives(struct pilots *p, struct place *place, const struct pilots_seen *seen,
                  const struct pilots_node *node, uint64_t now_us, struct pilots_orders *orders)
{
    snprintf(place->id, sizeof(place->id), "%s", seen->id);
    snprintf(place->says, sizeof(place->says), "%s", seen->says);
    if (place->state == LEAVING)
        return;
    if (seen->phase == PILOTS_WAITS) {
        if (place->state == JOINED) /* the engine took its machine away, and begins again */
            node_gone(p, place, node, seen->says, orders);
        enter(place, WAITS, now_us);
    } else if (node && node->here) {
        if ((place->state == WAITS || place->state == STARTED) && node->draining)
            order(orders, PILOTS_DRAIN, p, place)->node = node->id; /* of the name's last use */
        enter(place, JOINED, now_us);
        p->queues[place->queue].failures = 0;
        p->queues[place->queue].trouble[0] = 0;
    } else if (place->state != JOINED) {
        /* An agent that is silent for a while is the scheduler's to judge. */
        enter(place, STARTED, now_us);
    }
}

static void look(struct pilots *p, struct place *place, const struct pilots_view *view,
                 uint64_t now_us, struct pilots_orders *orders)
{
    const struct pilots_seen *seen = seen_of(place, view);
    const struct pilots_node *node = node_of(place, view);
    if (place->state == ASKED)
        return;
    if (!seen || seen->phase == PILOTS_ENDED) {
        ended(p, place, seen, node, now_us, orders);
        return;
    }
    lives(p, place, seen, node, now_us, orders);
    cancel_doubles(p, place, view, orders);
}

/* --- letting go --- */

static void cancel(struct pilots *p, struct place *place, uint64_t now_us,
                   struct pilots_orders *orders)
{
    order(orders, PILOTS_CANCEL, p, place);
    enter(place, LEAVING, now_us);
}

static void check_agent(struct pilots *p, struct place *place, const struct pilots_view *view,
                        uint64_t now_us, struct pilots_orders *orders)
{
    const struct pilots_bounds *bounds = &p->queues[place->queue].bounds;
    const struct pilots_node *node = node_of(place, view);
    if (place->state == JOINED && node && node->lost)
        cancel(p, place, now_us, orders); /* silent for too long: its tasks are given up */
    if (place->state != STARTED || now_us - place->since_us < bounds->join_us)
        return;
    char text[400];
    snprintf(text, sizeof(text),
             "the agent of %s %s did not join within %llu s of its start, and was cancelled: "
             "see its output",
             p->what, place->id, (unsigned long long)(bounds->join_us / 1000000));
    cancel(p, place, now_us, orders);
    failed(p, place, text, now_us);
}

static int count_in(const struct pilots *p, int queue, enum state from, enum state to)
{
    int count = 0;
    for (int i = 0; i < p->places_count; i++)
        count += p->places[i].queue == queue && p->places[i].state >= from &&
                 p->places[i].state <= to;
    return count;
}

/* First nothing new is started there; then, when nothing is there, it goes. */
static void review_idle(struct pilots *p, struct place *place, const struct pilots_view *view,
                        const struct pilots_demand *demand, uint64_t now_us,
                        struct pilots_orders *orders)
{
    const struct pilots_node *node = node_of(place, view);
    const struct pilots_bounds *bounds = &p->queues[place->queue].bounds;
    if (place->state != JOINED || !node || !node->here)
        return;
    if (node->tasks_count)
        place->idle_us = 0;
    else if (!place->idle_us)
        place->idle_us = now_us;
    bool goes = place->idle_us && now_us - place->idle_us >= bounds->idle_us && !demand->used &&
                !demand->wanted && count_in(p, place->queue, ASKED, JOINED) > bounds->min;
    if (goes && place->drained && node->draining) {
        cancel(p, place, now_us, orders);
    } else if (goes != place->drained && (goes != node->draining)) {
        struct pilots_order *drain = order(orders, PILOTS_DRAIN, p, place);
        drain->node = node->id;
        drain->drain = goes;
    }
    place->drained = goes;
}

/* Those that wait in the engine's queue, and that no job needs any more. */
static void cancel_surplus(struct pilots *p, int queue, const struct pilots_demand *demand,
                           uint64_t now_us, struct pilots_orders *orders)
{
    int min = p->queues[queue].bounds.min;
    int surplus = pilots_coming(p, queue) - demand->used;
    for (int i = p->places_count - 1; i >= 0 && surplus > 0; i--) {
        struct place *place = &p->places[i];
        if (place->queue != queue || place->state != WAITS ||
            count_in(p, queue, ASKED, JOINED) <= min)
            continue;
        cancel(p, place, now_us, orders);
        surplus--;
    }
}

/* --- asking for more --- */

static void ask(struct pilots *p, int queue, const struct pilots_demand *demand,
                uint64_t now_us, struct pilots_orders *orders)
{
    const struct pilots_bounds *bounds = &p->queues[queue].bounds;
    int missing = bounds->min - count_in(p, queue, ASKED, JOINED);
    int wanted = demand->wanted > missing ? demand->wanted : missing;
    wanted = wanted < TOGETHER ? wanted : TOGETHER;
    if (now_us < p->queues[queue].retry_us)
        return;
    for (int i = 0; i < p->places_count && wanted > 0; i++) {
        struct place *place = &p->places[i];
        if (place->queue != queue || place->state != FREE)
            continue;
        order(orders, PILOTS_SUBMIT, p, place);
        enter(place, ASKED, now_us);
        wanted--;
    }
}

void pilots_look(struct pilots *p, const struct pilots_view *view, uint64_t now_us,
                 struct pilots_orders *orders)
{
    for (int i = 0; i < p->places_count; i++) {
        look(p, &p->places[i], view, now_us, orders);
        check_agent(p, &p->places[i], view, now_us, orders);
    }
}

void pilots_decide(struct pilots *p, const struct pilots_view *view,
                   const struct pilots_demand *demand, uint64_t now_us,
                   struct pilots_orders *orders)
{
    for (int i = 0; i < p->places_count; i++)
        review_idle(p, &p->places[i], view, &demand[p->places[i].queue], now_us, orders);
    for (int q = 0; q < p->queues_count; q++) {
        cancel_surplus(p, q, &demand[q], now_us, orders);
        ask(p, q, &demand[q], now_us, orders);
    }
}

bool pilots_none(const struct pilots *p)
{
    for (int i = 0; i < p->places_count; i++)
        if (p->places[i].state != FREE)
            return false;
    return true;
}

void pilots_submitted(struct pilots *p, int at, const char *id, const char *why,
                      uint64_t now_us)
{
    assert(at >= 0 && at < p->places_count);
    struct place *place = &p->places[at];
    if (id) {
        snprintf(place->id, sizeof(place->id), "%s", id);
        snprintf(place->says, sizeof(place->says), "submitted");
        enter(place, WAITS, now_us);
        return;
    }
    enter(place, UNSURE, now_us);
    failed(p, place, why, now_us);
}

void pilots_end(struct pilots *p, const struct pilots_view *view, struct pilots_orders *orders)
{
    for (int i = 0; i < p->places_count; i++) {
        struct place *place = &p->places[i];
        const struct pilots_node *node = node_of(place, view);
        bool ours = place->state == WAITS || place->state == STARTED || place->state == JOINED;
        if (ours && !(node && node->here && node->tasks_count))
            order(orders, PILOTS_CANCEL, p, place);
    }
}

/* --- what it looks like --- */

int pilots_coming(const struct pilots *p, int queue)
{
    return count_in(p, queue, ASKED, STARTED);
}

int pilots_room(const struct pilots *p, int queue)
{
    return count_in(p, queue, FREE, FREE);
}

struct pilots_count pilots_count(const struct pilots *p, int queue)
{
    return (struct pilots_count){
        .queue = p->queues[queue].bounds.queue,
        .waiting = count_in(p, queue, ASKED, WAITS),
        .starting = count_in(p, queue, STARTED, STARTED),
        .joined = count_in(p, queue, JOINED, JOINED),
        .leaving = count_in(p, queue, LEAVING, LEAVING),
        .max = p->queues[queue].bounds.max,
    };
}

bool pilots_explain(const struct pilots *p, int at, uint64_t now_us, char *text,
                    size_t text_size)
{
    const struct queue *queue = &p->queues[at];
    const struct place *first = NULL;
    int others = -1;
    for (int i = 0; i < p->places_count; i++) {
        const struct place *place = &p->places[i];
        if (place->queue != at || (place->state != WAITS && place->state != STARTED))
            continue;
        others++;
        first = first ? first : place;
    }
    char more[40] = "";
    if (others > 0)
        snprintf(more, sizeof(more), " (and %d more)", others);
    if (first)
        snprintf(text, text_size, "Waiting for %s %s%s, %s%s.", p->what, first->id, more,
                 first->says, first->state == STARTED ? ": its agent has not joined yet" : "");
    else if (queue->trouble[0])
        snprintf(text, text_size, "Waiting for a %s: %s. The next is tried in %llu s.", p->what,
                 queue->trouble,
                 (unsigned long long)(queue->retry_us > now_us
                                          ? (queue->retry_us - now_us + 999999) / 1000000
                                          : 0));
    return first || queue->trouble[0];
}
