/*
 * strategy_test.c - workers that do not wait for each other, workers that are not waited for,
 * and gradients that travel in 16 bits: a ps and two or three workers in this process.
 */
#include <limits.h>
#include <math.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/str.h"
#include "kernels/list.h"
#include "runtime/checkpoint.h"
#include "runtime/device.h"
#include "runtime/graph.h"
#include "runtime/io/file.h"
#include "runtime/model/model.h"
#include "runtime/spec/spec.h"
#include "runtime/train/runner.h"
#include "runtime/train/train.h"
#include "runtime/worker/link.h"
#include "runtime/worker/worker.h"
#include "tests/unit/folder.h"

enum { TASKS_MAX = 4, ROWS = 600 };

struct yard {
    struct worker *workers[TASKS_MAX];
    struct worker_link *links[TASKS_MAX];
    struct runner_cluster cluster;
    struct arena *arena;
    const struct spec *spec;
    const char *data, *checkpoints;
    const char *init; /* weights to start from; NULL: none */
};

/* y is a plane over two features. */
static const char *make_data(void)
{
    static char folder[200];
    struct error err;
    struct str text = {0};
    if (folder[0])
        return folder;
    str_add(&text, "a,b,y\n");
    for (int i = 0; i < ROWS; i++) {
        double a = (double)(i * 37 % 101) / 50 - 1, b = (double)(i * 53 % 97) / 48 - 1;
        str_printf(&text, "%g,%g,%g\n", a, b, 0.7 * a - 0.3 * b + 0.1);
    }
    snprintf(folder, sizeof(folder), "%s", folder_path("plane"));
    CHECK_INT(mkdir(folder, 0700), 0);
    char *path = alloc_printf("%s/train.csv", folder);
    CHECK_OK(file_write(path, text.data, text.size, &err), &err);
    str_release(&text);
    free(path);
    return folder;
}

/* `layers` come before the last one; no servers: workers alone. */
static struct yard *yard_of(int servers, int workers, int batch, const char *layers,
                            const char *strategy, const char *name)
{
    struct error err;
    static bool known;
    struct yard *yard = alloc_bytes(sizeof(*yard));
    yard->arena = arena_new();
    yard->data = make_data();
    if (!known)
        kernels_add(false);
    known = true;
    int tasks = yard->cluster.links_count = servers + workers;
    for (int i = 0; i < tasks; i++) {
        const struct worker_options options = {.job = i < servers ? "ps" : "worker",
                                               .task = i < servers ? i : i - servers,
                                               .threads = 1};
        yard->workers[i] = worker_new(&options, &err);
        CHECK_OK(yard->workers[i], &err);
        yard->links[i] = link_local_new(yard->workers[i]);
    }
    for (int i = 0; i < tasks; i++)
        worker_set_peers(yard->workers[i], yard->links, tasks);
    yard->cluster.home = servers;
    const char *text = arena_printf(
        yard->arena,
        "{\"seed\": 3, \"model\": {\"layers\": [%s{\"layer\": \"Dense\", \"units\": 1}]},"
        " \"data\": {\"dataset\": \"plane\", \"batch_size\": %d, \"validation\": 100,"
        "  \"target\": \"y\"},"
        " \"train\": {\"loss\": \"mean_squared_error\", \"steps\": 300, \"eval_every\": 100,"
        "  \"optimizer\": {\"name\": \"Adam\", \"learning_rate\": 0.02}},"
        " \"checkpoint\": {\"every_steps\": 70}, \"strategy\": %s,"
        " \"tasks\": {\"ps\": %d, \"worker\": %d}}",
        layers, batch, strategy, servers, workers);
    yard->spec = spec_parse_training(yard->arena, text, strlen(text), &err);
    CHECK_OK(yard->spec, &err);
    yard->checkpoints = folder_path(name);
    CHECK_INT(mkdir(yard->checkpoints, 0700), 0);
    return yard;
}

static struct yard *yard_open(int workers, const char *strategy, const char *name)
{
    return yard_of(1, workers, 8, "", strategy, name);
}

static void yard_close(struct yard *yard)
{
    for (int i = 0; i < yard->cluster.links_count; i++)
        worker_free(yard->workers[i]);
    for (int i = 0; i < yard->cluster.links_count; i++)
        link_free(yard->links[i]);
    arena_free(yard->arena);
    free(yard);
}

struct outcome {
    int64_t step, resumed_from;
    double loss, val_loss;
    int evaluations, saves, notices;
};

/* Trains to the end, at most `steps`. */
static struct outcome train_all(struct yard *yard, int64_t steps, bool resume)
{
    struct error err;
    struct outcome out = {0};
    struct train_report report = {0};
    yard->cluster.links = yard->links;
    const struct train_options options = {.spec = yard->spec,
                                          .data = yard->data,
                                          .checkpoints = yard->checkpoints,
                                          .steps = steps,
                                          .threads = 1,
                                          .resume = resume,
                                          .init = yard->init,
                                          .cluster = &yard->cluster};
    struct train *train = train_open(&options, &err);
    CHECK_OK(train, &err);
    out.resumed_from = train_facts(train)->resumed_from;
    while (report.what != TRAIN_ENDED) {
        CHECK_OK(train_next(train, &report, &err), &err);
        CHECK(report.step >= out.step);
        out.step = report.step;
        out.loss = report.values[0];
        out.evaluations += report.what == TRAIN_EVALUATED;
        out.saves += report.what == TRAIN_SAVED;
        out.notices += report.what == TRAIN_NOTICE;
        if (report.val_values)
            out.val_loss = report.val_values[0];
    }
    train_close(train);
    return out;
}

static void check_learns(const char *strategy, int workers, const char *name)
{
    struct yard *yard = yard_open(workers, strategy, name);
    struct outcome begun = train_all(yard, 150, false);
    CHECK_INT(begun.step, 150);
    CHECK_INT(begun.saves, 3); /* after 70, 140 and at the end, or a few steps later */
    CHECK_INT(begun.evaluations, 2);
    struct outcome whole = train_all(yard, 0, true);
    CHECK_INT(whole.resumed_from, 150);
    CHECK_INT(whole.step, 300);
    if (whole.val_loss > 0.02) /* it begins above 0.2, and ends near 0 */
        CHECK_STOP("%s ends at %g, after %g in the middle", strategy, whole.val_loss,
                   begun.val_loss);
    yard_close(yard);
}

TEST(workers_that_do_not_wait_learn)
{
    check_learns("{\"mode\": \"async\"}", 3, "async");
}

TEST(a_step_without_the_last_workers_learns)
{
    check_learns("{\"backup_workers\": 1}", 3, "backup");
    check_learns("{\"backup_workers\": 2, \"compress\": \"bfloat16\"}", 3, "first");
}

TEST(gradients_in_16_bits_learn)
{
    check_learns("{\"compress\": \"bfloat16\"}", 2, "bfloat16");
    check_learns("{\"compress\": \"float16\", \"mode\": \"async\"}", 2, "float16");
}

/* One worker whom nobody waits for trains as one whom somebody does. */
TEST(alone_they_are_the_same)
{
    static const char *const strategies[] = {"{}", "{\"mode\": \"async\"}"};
    double losses[ARRAY_LEN(strategies)];
    for (int i = 0; i < ARRAY_LEN(strategies); i++) {
        struct yard *yard = yard_open(1, strategies[i], i ? "alone-async" : "alone");
        losses[i] = train_all(yard, 0, false).val_loss;
        yard_close(yard);
    }
    CHECK(losses[0] == losses[1]);
}

/* --- all-reduce --- */

#define SMALL "{\"layer\": \"Dense\", \"units\": 6, \"activation\": \"tanh\"},"
#define LARGE /* a ring's worth for each of three, above all of a kernel alone */              \
    "{\"layer\": \"Dense\", \"units\": 300, \"activation\": \"tanh\"}, {\"layer\": "           \
    "\"Dense\", "                                                                              \
    "\"units\": 301, \"activation\": \"tanh\"},"

static double loss_of(int workers, int batch, const char *layers, const char *strategy,
                      const char *name, int64_t steps)
{
    struct yard *yard = yard_of(0, workers, batch, layers, strategy, name);
    double loss = train_all(yard, steps, false).loss;
    yard_close(yard);
    return loss;
}

/* What workers come to among themselves is what one comes to with all their examples. */
TEST(workers_among_themselves_learn_what_one_learns)
{
    static const struct {
        const char *layers;
        int workers;
    } rows[] = {{SMALL, 2}, {SMALL, 3}, {SMALL, 4}, {LARGE, 2}, {LARGE, 3}};
    for (int i = 0; i < ARRAY_LEN(rows); i++) {
        char name[3][40];
        for (int k = 0; k < 3; k++)
            snprintf(name[k], sizeof(name[k]), "among-%d-%d", i, k);
        const char *strategy = "{\"mode\": \"allreduce\"}";
        double one = loss_of(1, 4 * rows[i].workers, rows[i].layers, "{}", name[0], 40);
        double all = loss_of(rows[i].workers, 4, rows[i].layers, strategy, name[1], 40);
        double again = loss_of(rows[i].workers, 4, rows[i].layers, strategy, name[2], 40);
        CHECK(all == again);
        if (fabs(all - one) > 1e-4 * fabs(one))
            CHECK_STOP("%d workers end at %.9g, one at %.9g", rows[i].workers, all, one);
    }
}

TEST(workers_among_themselves_resume)
{
    for (int halves = 0; halves < 2; halves++) {
        const char *strategy = halves ? "{\"mode\": \"allreduce\", \"compress\": \"bfloat16\"}"
                                      : "{\"mode\": \"allreduce\"}";
        struct yard *yard = yard_of(0, 3, 4, LARGE, strategy, halves ? "half-b" : "half");
        struct yard *whole = yard_of(0, 3, 4, LARGE, strategy, halves ? "whole-b" : "whole");
        CHECK_INT(train_all(yard, 30, false).step, 30);
        struct outcome resumed = train_all(yard, 60, true);
        CHECK_INT(resumed.resumed_from, 30);
        CHECK(resumed.loss == train_all(whole, 60, false).loss);
        yard_close(yard);
        yard_close(whole);
    }
}

/* --- elastic --- */

/* A task that cannot be reached for a while: from one step on until some looks later. */
struct flaky {
    struct worker_link link;
    struct worker_link *to;
    atomic_int runs_left;  /* until it is gone */
    atomic_int looks_left; /* then, until it is there again */
};

static bool is_gone(struct worker_link *link)
{
    struct flaky *flaky = (struct flaky *)link;
    return atomic_load(&flaky->runs_left) < 0 && atomic_load(&flaky->looks_left) > 0;
}

static bool flaky_status(struct worker_link *link, struct device *devices, int devices_max,
                         int *count, struct error *err)
{
    struct flaky *flaky = (struct flaky *)link;
    if (is_gone(link) && atomic_fetch_sub(&flaky->looks_left, 1) > 0)
        return fail(err, UNAVAILABLE, "it does not answer");
    return flaky->to->kind->status(flaky->to, devices, devices_max, count, err);
}

static void flaky_run(struct worker_link *link, struct worker_run *run)
{
    struct flaky *flaky = (struct flaky *)link;
    struct error err = {0};
    atomic_fetch_sub(&flaky->runs_left, 1);
    if (is_gone(link)) {
        (void)fail(&err, UNAVAILABLE, "it fell");
        run->done(run, &err);
        return;
    }
    flaky->to->kind->run_graph(flaky->to, run);
}

#define TO(link_) (((struct flaky *)(link_))->to)

static bool flaky_create(struct worker_link *link, const char *session, bool isolate,
                         struct error *err)
{
    return TO(link)->kind->create_session(TO(link), session, isolate, err);
}

static bool flaky_delete(struct worker_link *link, const char *session, struct error *err)
{
    return TO(link)->kind->delete_session(TO(link), session, err);
}

static bool flaky_register(struct worker_link *link, const char *session, const void *graph_def,
                           size_t size, int64_t collectives, char handle[WORKER_HANDLE_BYTES],
                           struct error *err)
{
    return TO(link)->kind->register_graph(TO(link), session, graph_def, size, collectives,
                                          handle, err);
}

static bool flaky_deregister(struct worker_link *link, const char *session, const char *handle,
                             struct error *err)
{
    return TO(link)->kind->deregister_graph(TO(link), session, handle, err);
}

static void flaky_cleanup(struct worker_link *link, int64_t step_id)
{
    TO(link)->kind->cleanup_graph(TO(link), step_id);
}

static void flaky_receive(struct worker_link *link, int64_t step_id, const char *key,
                          rendezvous_receiver *receiver, void *arg)
{
    TO(link)->kind->receive(TO(link), step_id, key, receiver, arg);
}

static const struct worker_link_kind flaky_kind = {.status = flaky_status,
                                                   .create_session = flaky_create,
                                                   .delete_session = flaky_delete,
                                                   .register_graph = flaky_register,
                                                   .deregister_graph = flaky_deregister,
                                                   .run_graph = flaky_run,
                                                   .cleanup_graph = flaky_cleanup,
                                                   .receive = flaky_receive};

/* Rings and trees, with one worker lost and back, with two lost at different steps, and with a
 * checkpoint between: the loss is, to the bit, that of workers that were always there. */
TEST(an_elastic_ring_is_that_of_all_workers)
{
    static const char *const strategies[] = {
        "{\"mode\": \"allreduce\"}", "{\"mode\": \"allreduce\", \"elastic\": true}",
        "{\"mode\": \"allreduce\", \"elastic\": {\"min_workers\": 2}}",
        "{\"mode\": \"allreduce\", \"elastic\": true}"};
    static const char layers[] = LARGE "{\"layer\": \"Dropout\", \"rate\": 0.2},";
    double losses[ARRAY_LEN(strategies)];
    for (int i = 0; i < ARRAY_LEN(strategies); i++) {
        char name[40];
        snprintf(name, sizeof(name), "elastic-ring-%d", i);
        struct yard *yard = yard_of(0, 3, 4, layers, strategies[i], name);
        struct flaky flaky[2];
        for (int k = 0; k < 2; k++) {
            flaky[k] = (struct flaky){.link = *yard->links[k + 1], .to = yard->links[k + 1]};
            flaky[k].link.kind = &flaky_kind;
            bool falls = i == 1 ? k == 0 : i > 1;
            atomic_init(&flaky[k].runs_left, falls ? 9 + 6 * k : INT_MAX);
            atomic_init(&flaky[k].looks_left, i == 2 ? 3 : INT_MAX);
            yard->links[k + 1] = &flaky[k].link;
        }
        struct outcome begun = train_all(yard, 12, false);
        CHECK_INT(begun.step, 12);
        CHECK(i ? begun.notices > 0 : begun.notices == 0);
        for (int k = 0; k < 2; k++) /* a new attempt finds all of them there */
            atomic_store(&flaky[k].looks_left, 0);
        losses[i] = train_all(yard, 24, true).loss;
        for (int k = 0; k < 2; k++)
            yard->links[k + 1] = flaky[k].to;
        yard_close(yard);
    }
    for (int i = 1; i < ARRAY_LEN(strategies); i++)
        CHECK(losses[i] == losses[0]);
}

/* A batch in shards, whoever does them, is a step of all workers at once. */
TEST(an_elastic_step_is_that_of_all_workers)
{
    static const char *const strategies[] = {"{}", "{\"elastic\": true}",
                                             "{\"elastic\": {\"min_workers\": 3}}"};
    static const char layers[] = SMALL "{\"layer\": \"Dropout\", \"rate\": 0.2},";
    double losses[ARRAY_LEN(strategies)];
    for (int i = 0; i < ARRAY_LEN(strategies); i++) {
        char name[40];
        snprintf(name, sizeof(name), "elastic-%d", i);
        struct yard *yard = yard_of(1, 3, 8, layers, strategies[i], name);
        CHECK_INT(train_all(yard, 75, false).step, 75);
        struct outcome whole = train_all(yard, 0, true);
        CHECK_INT(whole.resumed_from, 75);
        losses[i] = whole.val_loss;
        yard_close(yard);
    }
    CHECK(losses[1] == losses[0]);
    CHECK(losses[2] == losses[0]);
}

/* --- variables in parts --- */

#define DEEP                                                                                   \
    "{\"layer\": \"Dense\", \"units\": 12, \"activation\": \"tanh\", \"kernel_regularizer\": " \
    "{\"name\": \"L2\", \"l2\": 0.01}}, {\"layer\": \"Dense\", \"units\": 12, "                \
    "\"activation\": \"tanh\"}, {\"layer\": \"Dense\", \"units\": 9, \"activation\": "         \
    "\"tanh\"},"

static double loss_in_parts(int servers, const char *strategy, const char *name)
{
    struct yard *yard = yard_of(servers, 2, 8, DEEP, strategy, name);
    double loss = train_all(yard, 40, false).loss;
    yard_close(yard);
    return loss;
}

/* Sums are over the same numbers in the same order, so the bits are those of whole variables.
 */
TEST(variables_in_parts_learn_the_same)
{
    static const char *const strategies[] = {
        "{\"partitioner\": {\"name\": \"fixed_size_partitioner\"}}",
        "{\"partitioner\": {\"name\": \"min_max_variable_partitioner\", "
        "\"max_partitions\": 4, \"min_slice_size\": 100}}"};
    double whole = loss_in_parts(2, "{}", "parts-none");
    for (int i = 0; i < ARRAY_LEN(strategies); i++) {
        double loss = loss_in_parts(2, strategies[i], i ? "parts-min-max" : "parts-fixed");
        if (loss != whole)
            CHECK_STOP("%s ends at %.9g, whole variables at %.9g", strategies[i], loss, whole);
    }
}

TEST(variables_in_parts_resume_in_other_parts)
{
    struct error err;
    struct checkpoint saved;
    struct yard *begun = yard_of(2, 2, 8, DEEP,
                                 "{\"partitioner\": {\"name\": \"fixed_size_partitioner\", "
                                 "\"num_shards\": 5}}",
                                 "parts-begun");
    struct yard *more = yard_of(1, 2, 8, DEEP,
                                "{\"partitioner\": {\"name\": \"fixed_size_partitioner\", "
                                "\"num_shards\": 2}}",
                                "parts-more");
    struct yard *whole = yard_of(1, 2, 8, DEEP, "{}", "parts-whole");
    CHECK_INT(train_all(begun, 20, false).step, 20);
    CHECK_OK(checkpoint_load(begun->checkpoints, &saved, &err), &err);
    const struct tensor *kernel = checkpoint_find(&saved, "dense_1/kernel/Adam");
    CHECK(kernel && kernel->shape.rank == 2 && kernel->shape.dims[0] == 12);
    CHECK(!checkpoint_find(&saved, "dense_1/kernel/part_0"));
    checkpoint_release(&saved);
    more->checkpoints = begun->checkpoints;
    struct outcome resumed = train_all(more, 40, true);
    CHECK_INT(resumed.resumed_from, 20);
    CHECK(resumed.loss == train_all(whole, 40, false).loss);
    whole->checkpoints = begun->checkpoints;
    CHECK_INT(train_all(whole, 50, true).resumed_from, 40);
    yard_close(begun);
    yard_close(more);
    yard_close(whole);
}

/* From a checkpoint of whole variables, and from one of parts: the losses of the first step and
 * of those behind it are those of whole variables that start there. */
TEST(variables_in_parts_start_from_other_weights)
{
    static const char *const strategies[] = {
        "{}", "{\"partitioner\": {\"name\": \"fixed_size_partitioner\", \"num_shards\": 5}}",
        "{\"partitioner\": {\"name\": \"fixed_size_partitioner\", \"num_shards\": 2}}"};
    for (int from = 0; from < 2; from++) {
        double losses[ARRAY_LEN(strategies)];
        char name[40];
        snprintf(name, sizeof(name), "other-%d", from);
        struct yard *begun = yard_of(2, 2, 8, DEEP, strategies[from], name);
        train_all(begun, 40, false);
        for (int i = 0; i < ARRAY_LEN(strategies); i++) {
            snprintf(name, sizeof(name), "other-%d-%d", from, i);
            struct yard *more = yard_of(2, 2, 8, DEEP, strategies[i], name);
            double anew = train_all(more, 1, false).loss;
            more->init = arena_text(more->arena, begun->checkpoints);
            losses[i] = train_all(more, 1, false).loss;
            CHECK(losses[i] < anew);
            losses[i] += train_all(more, 3, false).loss;
            yard_close(more);
        }
        CHECK(losses[1] == losses[0]);
        CHECK(losses[2] == losses[0]);
        yard_close(begun);
    }
}

/* --- one model on several tasks --- */

static void check_near(double found, double wanted, const char *what)
{
    if (!(fabs(found - wanted) <= 1e-4 * fabs(wanted)))
        CHECK_STOP("%s ends at %.9g, one task at %.9g", what, found, wanted);
}

/* Parts of a batch on several stages come to what one task comes to with the whole of it. */
TEST(a_pipeline_learns_what_one_task_learns)
{
    static const struct {
        int workers;
        const char *strategy;
    } rows[] = {{2, "{\"mode\": \"pipeline\"}"},
                {3, "{\"mode\": \"pipeline\", \"micro_batches\": 8}"},
                {4, "{\"mode\": \"pipeline\", \"micro_batches\": 2}"},
                {2, "{\"mode\": \"pipeline\", \"micro_batches\": 1}"},
                {1, "{\"mode\": \"pipeline\", \"micro_batches\": 4}"}};
    double one = loss_of(1, 24, DEEP, "{}", "pipe-one", 60);
    for (int i = 0; i < ARRAY_LEN(rows); i++) {
        char name[2][40];
        for (int k = 0; k < 2; k++)
            snprintf(name[k], sizeof(name[k]), "pipe-%d-%d", i, k);
        double all = loss_of(rows[i].workers, 24, DEEP, rows[i].strategy, name[0], 60);
        double again = loss_of(rows[i].workers, 24, DEEP, rows[i].strategy, name[1], 60);
        CHECK(all == again);
        check_near(all, one, rows[i].strategy);
    }
}

TEST(a_pipeline_resumes)
{
    const char *strategy = "{\"mode\": \"pipeline\", \"compress\": \"bfloat16\"}";
    struct yard *yard = yard_of(0, 3, 24, DEEP, strategy, "pipe-half");
    struct yard *whole = yard_of(0, 3, 24, DEEP, strategy, "pipe-whole");
    CHECK_INT(train_all(yard, 30, false).step, 30);
    struct outcome resumed = train_all(yard, 60, true);
    CHECK_INT(resumed.resumed_from, 30);
    CHECK(resumed.loss == train_all(whole, 60, false).loss);
    yard_close(yard);
    yard_close(whole);
}

#define PINNED                                                                                 \
    "{}, \"placement\": {\"pins\": {\"dense_1\": \"/job:worker/task:1\", \"*_2\": \"%s\"}}"

static void check_wish(const struct graph *graph, const char *node, const char *wish)
{
    const struct node *found = graph_find(graph, node);
    if (!found || strncmp(found->requested_device, wish, strlen(wish)) != 0)
        CHECK_STOP("%s is wished to %s, wanted %s", node, found ? found->requested_device : "-",
                   wish);
}

static void check_pinned(const struct yard *yard, const char *second)
{
    struct error err;
    struct model model;
    struct device_name wish;
    char text[160];
    const struct model_feature feature = {"x", F32, SHAPE(2)};
    const struct model_data data = {&feature, 1, {"y", F32, SHAPE(1)}, .classes = 0};
    CHECK_OK(model_build(yard->spec, &data, &model, &err), &err);
    CHECK_OK(device_name_parse(second, &wish, &err), &err);
    device_name_text(&wish, text, sizeof(text));
    check_wish(model.graph, "dense_1/MatMul", "/job:worker/task:1");
    check_wish(model.graph, "dense_1/kernel", "/job:worker/task:1");
    check_wish(model.graph, "dense_1/kernel/Adam", "/job:worker/task:1");
    check_wish(model.graph, "dense_2/MatMul", text);
    check_wish(model.graph, "dense_2/bias/Adam_1", text);
    check_wish(model.graph, "eval/dense_2/MatMul", text);
    check_wish(model.graph, "gradients/dense_2/MatMul_grad/MatMul", text);
    check_wish(model.graph, "dense/MatMul", "/job:worker/task:0");
    model_release(&model);
}

/* Layers are where they are pinned, with all that is theirs, and learn the same. */
TEST(pinned_layers_learn_what_one_task_learns)
{
    static const struct {
        int servers;
        const char *second;
    } rows[] = {
        {0, "/job:worker/task:1"}, {0, "/job:worker/replica:0/task:0/cpu:0"}, {1, "/job:ps"}};
    double one = loss_of(1, 24, DEEP, "{}", "pins-one", 60);
    for (int i = 0; i < ARRAY_LEN(rows); i++) {
        char strategy[200], name[40];
        snprintf(strategy, sizeof(strategy), PINNED, rows[i].second);
        snprintf(name, sizeof(name), "pins-%d", i);
        struct yard *yard = yard_of(rows[i].servers, 2, 24, DEEP, strategy, name);
        check_near(train_all(yard, 60, false).loss, one, strategy);
        check_pinned(yard, rows[i].second);
        yard_close(yard);
    }
}

/* A device that no task has is what the placer says, as TensorFlow does. */
TEST(a_pin_that_cannot_be_met_is_told)
{
    struct error err;
    char strategy[200];
    snprintf(strategy, sizeof(strategy), PINNED, "/job:worker/task:0/gpu:0");
    struct yard *yard = yard_of(0, 2, 24, DEEP, strategy, "pins-gpu");
    yard->cluster.links = yard->links;
    const struct train_options options = {
        .spec = yard->spec, .data = yard->data, .threads = 1, .cluster = &yard->cluster};
    CHECK(!train_open(&options, &err));
    CHECK_INT(err.code, INVALID);
    CHECK(strstr(err.text, "was explicitly assigned to /job:worker/task:0/device:GPU:0 but "
                           "available devices are [ /job:worker/replica:0/task:0/device:CPU:0, "
                           "/job:worker/replica:0/task:1/device:CPU:0 ]"));
    yard_close(yard);
}
