/* split_test.c - tensors that are taken apart: what is copied, what is given out, and that both
 * are right. */

#include "kernels/list.h"
#include "tests/unit/runtime/flow.h"

enum { PARTS = 3 };

static const float *seen[PARTS]; /* where the parts were */

/* Part N is "seenN". */
static bool run_seen(struct kernel_call *call, struct error *error)
{
    const struct tensor *x = kernel_in(call, 0);
    (void)error;
    seen[call->node->name[4] - '0'] = tensor_f32(x);
    kernel_output_share(call, 0, x, &x->shape);
    return true;
}

static const struct op op_seen = {
    .name = "Seen", .inputs = "x:T", .outputs = "y:T", .attrs = "T:type"};
static const struct op *const ops[] = {&op_seen, NULL};
static const struct kernel *const kernels[] = {
    &(const struct kernel){.op = "Seen", .run = run_seen}, NULL};

struct split {
    int64_t rows, columns;
    int axis;
    int64_t sizes[PARTS];
    bool flows;  /* the run decides what runs, so that it has no plan for its memory */
    bool shared; /* somebody else reads what is taken apart */
};

/* x, which is [rows, columns], negated, taken apart, negated again and joined: "back". */
static struct world *build(const struct split *split)
{
    static bool added;
    if (!added) {
        kernel_add_table(kernels);
        kernels_add(true);
        CHECK_OK(op_add_table(ops, &err), &err);
    }
    added = true;
    struct world *w = world_new_with(true);
    struct edge x = placeholder(w, "x", F32), one = scalar(w, "one", 1);
    if (split->flows)
        x = builder_output(node2(w, "Switch", "switch", x,
                                 node2(w, "Less", "less", scalar(w, "zero", 0), one)),
                           1);
    struct edge y = node1(w, "Neg", "y", x),
                axis = builder_scalar(&w->b, "axis", I32, split->axis);
    struct edge sizes = builder_ints(&w->b, "sizes", I32, split->sizes, PARTS);
    struct edge parts = builder_add(&w->b, "SplitV", "parts", INPUTS(y, sizes, axis),
                                    ATTRS(attr_int("num_split", PARTS)));
    struct edge again[PARTS];
    for (int i = 0; i < PARTS; i++) {
        char name[2][32];
        snprintf(name[0], sizeof(name[0]), "seen%d", i);
        snprintf(name[1], sizeof(name[1]), "again%d", i);
        again[i] =
            node1(w, "Neg", name[1], node1(w, "Seen", name[0], builder_output(parts, i)));
    }
    struct edge back = builder_add(&w->b, "ConcatV2", "join",
                                   INPUTS(again[0], again[1], again[2], axis), NO_ATTRS);
    if (split->shared)
        back = node2(w, "Minimum", "least", back, node1(w, "Neg", "other", y));
    node1(w, "Identity", "back", back);
    begin(w);
    return w;
}

/* Runs it some times; what comes back is x. */
static void run(const struct split *split)
{
    struct world *w = build(split);
    struct tensor x, back;
    CHECK_OK(tensor_init(&x, F32, &SHAPE(split->rows, split->columns), &err), &err);
    for (int round = 0; round < 5; round++) {
        for (int64_t i = 0; i < x.count; i++)
            tensor_f32_mut(&x)[i] = (float)(i + 1 + round);
        CHECK_OK(run_with(w, "x", &x, "back", &back, &err), &err);
        CHECK(tensor_equal(&x, &back));
        tensor_release(&back);
    }
    tensor_release(&x);
    world_free(w);
}

TEST(parts_of_what_nobody_else_has_are_given_out)
{
    const struct split split = {.rows = 6, .columns = 16, .sizes = {1, 3, 2}, .flows = true};
    run(&split);
    CHECK(seen[1] == seen[0] + 16);
    CHECK(seen[2] == seen[0] + 64);
}

TEST(parts_that_begin_on_no_boundary_are_copied)
{
    const struct split split = {.rows = 6, .columns = 15, .sizes = {1, 3, 2}, .flows = true};
    run(&split);
    for (int i = 1; i < PARTS; i++)
        CHECK_INT((uintptr_t)seen[i] % TENSOR_ALIGN, 0);
    CHECK(seen[1] < seen[0] || seen[1] >= seen[0] + 90);
}

TEST(parts_of_rows_are_copied)
{
    const struct split split = {
        .rows = 2, .columns = 64, .axis = 1, .sizes = {16, 32, 16}, .flows = true};
    run(&split);
    CHECK(seen[1] != seen[0] + 16);
}

TEST(what_others_read_is_copied)
{
    const struct split split = {
        .rows = 6, .columns = 16, .sizes = {1, 3, 2}, .flows = true, .shared = true};
    run(&split);
    CHECK(seen[1] != seen[0] + 16 || seen[2] != seen[0] + 64);
}

TEST(a_planned_run_takes_apart_as_well)
{
    const struct split split = {.rows = 6, .columns = 16, .sizes = {1, 3, 2}};
    run(&split);
}

TEST(empty_parts_are_parts)
{
    const struct split split = {.rows = 6, .columns = 16, .sizes = {0, 6, 0}, .flows = true};
    run(&split);
}
