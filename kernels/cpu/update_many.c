/*
 * update_many.c - _UpdateRefs and _UpdateResources: one step of one optimizer for many
 * variables in one call, or for one whose gradient comes in pieces.
 *
 * Everything is checked before anything is changed.  The elements of all variables are shared
 * among the threads as if they were one array.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/update.h"
#include "kernels/list.h"
#include "runtime/resource.h"

enum { SLOTS_MAX = 3, SCALARS_MAX = 6 };

/* A gradient, or a piece of one, and what it changes. */
struct one {
    int64_t count;
    const float *grad;
    float *slots[SLOTS_MAX]; /* the variable's elements, then its slots' */
};

struct settings {
    float scalars[SCALARS_MAX];
    bool nesterov;
    struct isa_adam adam;
};

static void descent(const struct one *one, const struct settings *s, int64_t from,
                    int64_t count)
{
    isa()->scale_add(count, -s->scalars[0], one->grad + from, one->slots[0] + from);
}

static void momentum(const struct one *one, const struct settings *s, int64_t from,
                     int64_t count)
{
    isa()->momentum(count, s->scalars[0], s->scalars[1], s->nesterov, one->grad + from,
                    one->slots[1] + from, one->slots[0] + from);
}

static void keras_momentum(const struct one *one, const struct settings *s, int64_t from,
                           int64_t count)
{
    isa()->keras_momentum(count, s->scalars[0], s->scalars[1], s->nesterov, one->grad + from,
                          one->slots[1] + from, one->slots[0] + from);
}

static void adam(const struct one *one, const struct settings *s, int64_t from, int64_t count)
{
    isa()->adam(count, &s->adam, one->grad + from, one->slots[1] + from, one->slots[2] + from,
                one->slots[0] + from);
}

struct rule {
    const char *name; /* of the op, without Resource */
    int slots;        /* the variable and its slots */
    int scalars;
    void (*step)(const struct one *one, const struct settings *s, int64_t from, int64_t count);
};

static const struct rule rules[] = {
    {"ApplyGradientDescent", 1, 1, descent},
    {"ApplyMomentum", 2, 2, momentum},
    {"ApplyKerasMomentum", 2, 2, keras_momentum},
    {"ApplyAdam", 3, 6, adam},
};

static const struct rule *find_rule(const struct node *node)
{
    const char *name = node_attr_string(node, "rule", "");
    if (!strncmp(name, "Resource", 8))
        name += 8;
    for (int i = 0; i < ARRAY_LEN(rules); i++)
        if (!strcmp(rules[i].name, name))
            return &rules[i];
    return NULL;
}

static bool accepts(const struct node *node)
{
    const struct rule *rule = find_rule(node);
    int64_t updates = node_attr_int(node, "N", 0);
    int64_t variables = node_attr_int(node, "V", 0);
    return rule && (variables == updates * rule->slots || variables == rule->slots) &&
           node_attr_int(node, "S", 0) == rule->scalars;
}

/* Opened variables: of each gradient its own, `slots` of them; or of all the same. */
struct targets {
    struct opened *opened;
    int slots, count; /* of how many gradients */
};

static void close_all(struct targets *targets)
{
    for (int i = 0; i < targets->count; i++)
        kernel_close_variables(&targets->opened[i * targets->slots], targets->slots);
}

/* `whole` is the gradient, NULL when it comes in pieces. */
static bool open_next(struct kernel_call *call, struct targets *targets,
                      const struct tensor *whole, struct error *err)
{
    int first = targets->count * targets->slots;
    if (!kernel_open_variables(call, first, targets->slots, whole, &targets->opened[first],
                               err))
        return false;
    targets->count++;
    return true;
}

/* Whether each of the variables has as many elements as the pieces together. */
static bool check_pieces(const struct targets *targets, int64_t elements, struct error *err)
{
    for (int i = 0; i < targets->slots; i++)
        if (targets->opened[i].count != elements)
            return fail(err, INVALID,
                        "var and grad do not have the same shape: %lld elements, %lld",
                        (long long)targets->opened[i].count, (long long)elements);
    return true;
}

static bool open_all(struct kernel_call *call, struct targets *targets, struct one *all,
                     int count, int64_t *elements, struct error *err)
{
    bool pieces = node_attr_int(call->node, "V", 0) < (int64_t)count * targets->slots;
    int grads = call->node->inputs_count - count;
    bool ok = !pieces || open_next(call, targets, NULL, err);
    *elements = 0;
    for (int i = 0; ok && i < count; i++) {
        const struct tensor *grad = kernel_in(call, grads + i);
        ok = pieces || open_next(call, targets, grad, err);
        all[i] = (struct one){.count = grad->count, .grad = tensor_f32(grad)};
        for (int k = 0; ok && k < targets->slots; k++)
            all[i].slots[k] = pieces ? targets->opened[k].data + *elements
                                     : targets->opened[i * targets->slots + k].data;
        *elements += grad->count;
    }
    ok = ok && (!pieces || check_pieces(targets, *elements, err));
    if (!ok)
        close_all(targets);
    return ok;
}

/* Elements [from,to) of all variables, laid end to end. */
static void run_range(const struct rule *rule, const struct one *all, int count,
                      const struct settings *settings, int64_t from, int64_t to)
{
    int64_t start = 0;
    for (int i = 0; i < count && start < to; i++) {
        int64_t first = from > start ? from - start : 0;
        int64_t last = to - start < all[i].count ? to - start : all[i].count;
        if (first < last)
            rule->step(&all[i], settings, first, last - first);
        start += all[i].count;
    }
}

static bool update_run(struct kernel_call *call, struct error *err)
{
    const struct rule *rule = find_rule(call->node);
    int count = (int)node_attr_int(call->node, "N", 0);
    int variables = (int)node_attr_int(call->node, "V", 0);
    struct settings settings = {.nesterov = node_attr_bool(call->node, "use_nesterov", false)};
    for (int i = 0; i < rule->scalars; i++)
        if (!kernel_read_scalar(call, variables + i, "a setting of the optimizer",
                                &settings.scalars[i], err))
            return false;
    if (rule->step == adam)
        settings.adam = kernel_adam(settings.scalars, settings.nesterov);
    int64_t elements;
    struct one *all = kernel_scratch(call, (size_t)count * sizeof(*all), err);
    struct targets targets = {.slots = rule->slots};
    targets.opened = kernel_scratch(call, (size_t)variables * sizeof(*targets.opened), err);
    if (!all || !targets.opened || !open_all(call, &targets, all, count, &elements, err))
        return false;
    int threads = parallel_threads(call, elements * rule->slots);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(elements, 16, threads, t);
        run_range(rule, all, count, &settings, r.from, r.to);
    }
    close_all(&targets);
    return true;
}

#define UPDATE(name, op_name)                                                                  \
    const struct kernel kernel_##name##_cpu = {.op = op_name,                                  \
                                               .device = CPU,                                  \
                                               .dtypes = BIT(F32),                             \
                                               .accepts = accepts,                             \
                                               .run = update_run};

UPDATE(update_refs, "_UpdateRefs")
UPDATE(update_resources, "_UpdateResources")
