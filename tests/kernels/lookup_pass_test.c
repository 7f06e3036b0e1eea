/* lookup_pass_test.c - sequences of looked-up rows that multiply each row of the table once:
 * what they give, forward and back, is what they give without the pass. */

#include "runtime/gradient.h"
#include "runtime/op.h"
#include "tests/kernels/passes.h"

enum { STEPS = 5, BATCH = 6, INPUTS_OF_CELLS = 9, CELLS = 20 };

struct form {
    const char *op, *fused, *fused_grad;
    int gates;         /* of an op of our own; 0: an LSTM of TensorFlow's */
    bool own_gradient; /* of the V2: BlockLSTMGradV2 */
    bool variable;     /* the table is a resource */
    bool rows;         /* the gradient of what was looked up is wanted too */
    int64_t table;     /* its rows */
    int64_t length;    /* seq_len_max */
    enum dtype ids;
};

static struct edge table_of(const struct form *form, struct edge *read)
{
    const struct shape shape = SHAPE(form->table, INPUTS_OF_CELLS);
    struct edge value = constant("numbers", &shape);
    if (!form->variable) {
        *read = value;
        return value;
    }
    struct edge handle =
        builder_add(&b, "VarHandleOp", "table", NO_INPUTS,
                    ATTRS(attr_type("dtype", F32), attr_shape("shape", &shape)));
    builder_add(&b, "AssignVariableOp", "set_table", INPUTS(handle, value), NO_ATTRS);
    return handle;
}

static struct edge lstm(const struct form *form, struct edge x)
{
    struct edge state = constant("state", &SHAPE(BATCH, CELLS)),
                hole = constant("hole", &SHAPE(CELLS));
    struct edge all = builder_add(
        &b, form->op, "lstm",
        INPUTS(builder_scalar(&b, "length", I64, (double)form->length), x, state, state,
               constant("w", &SHAPE(INPUTS_OF_CELLS + CELLS, 4 * CELLS)), hole, hole, hole,
               constant("b", &SHAPE(4 * CELLS))),
        ATTRS(attr_float("cell_clip", 0), attr_bool(OP_OWN_GRADIENT, form->own_gradient)));
    return builder_output(all, 6);
}

static struct edge own_sequence(const struct form *form, struct edge x)
{
    int64_t columns = form->gates * CELLS;
    struct edge bias = constant("b", form->gates > 1 ? &SHAPE(2, columns) : &SHAPE(columns));
    return builder_add(&b, form->op, "sequence",
                       INPUTS(x, constant("state", &SHAPE(BATCH, CELLS)),
                              constant("kernel", &SHAPE(INPUTS_OF_CELLS, columns)),
                              constant("recurrent", &SHAPE(CELLS, columns)), bias),
                       NO_ATTRS);
}

/* "x" is what is looked up, "loss" a number; `*table` what the loss depends on. */
static struct edge make(const struct form *form, struct edge *table, struct edge *x)
{
    struct edge read;
    *table = table_of(form, &read);
    struct edge ids = builder_add(
        &b, "Placeholder", "ids", NO_INPUTS,
        ATTRS(attr_type("dtype", form->ids), attr_shape("shape", &SHAPE(STEPS, BATCH))));
    *x = form->variable
             ? builder_add(&b, "ResourceGather", "x", INPUTS(*table, ids),
                           ATTRS(attr_type("dtype", F32)))
             : builder_add(&b, "GatherV2", "x",
                           INPUTS(read, ids, builder_scalar(&b, "axis", I32, 0)), NO_ATTRS);
    struct edge h = form->gates ? own_sequence(form, *x) : lstm(form, *x);
    struct edge product = binary("Mul", h, constant("factor", &SHAPE(STEPS, BATCH, CELLS)));
    const int64_t axes[] = {0, 1, 2};
    return binary("Sum", product, builder_ints(&b, "axes", I32, axes, 3));
}

static void check_form(const struct form *form)
{
    begin();
    seed = 33;
    struct edge table, x, grads[2];
    struct edge loss = make(form, &table, &x);
    CHECK_OK(builder_ok(&b), &err);
    const struct edge of[] = {table, x};
    CHECK_OK(gradient_build(graph, &loss, 1, NULL, of, form->rows ? 2 : 1, grads, &err), &err);
    struct edge rows = form->rows ? unary("Square", grads[1]) : loss;
    struct tensor ids;
    CHECK_OK(tensor_init(&ids, form->ids, &SHAPE(STEPS, BATCH), &err), &err);
    for (int64_t i = 0; i < ids.count; i++)
        tensor_set_number(&ids, i, (double)(next() % (uint64_t)form->table));
    const char *fetches[] = {loss.from->name, grads[0].from->name, rows.from->name};
    const char *feed = "ids";
    const struct what what = {.run = {.feeds = &feed,
                                      .feed_values = &ids,
                                      .feeds_count = 1,
                                      .fetches = fetches,
                                      .fetches_count = form->rows ? 3 : 2},
                              .first = form->variable ? "set_table" : NULL,
                              .runs = 2,
                              .tolerance = 1e-4f};
    check_count(&what, OPTIMISE_LOOKUP, form->fused, 1, 0);
    check_count(&what, OPTIMISE_LOOKUP, form->fused_grad, 1, 0);
    check_count(&what, OPTIMISE_LOOKUP, "UnsortedSegmentSum", form->rows || !form->variable, 1);
    check_same_without(&what, OPTIMISE_LOOKUP, OPTIMISE_LOOKUP + 1);
    tensor_release(&ids);
    graph_free(graph);
}

static const struct form forms[] = {
    {"BlockLSTM", "_LookupBlockLSTM", "_LookupBlockLSTMGrad", .gates = 0},
    {"BlockLSTMV2", "_LookupBlockLSTMV2", "_LookupBlockLSTMGradV2", .own_gradient = true},
    {"_GRUSequence", "_LookupGRUSequence", "_LookupGRUSequenceGrad", .gates = 3},
    {"_RNNSequence", "_LookupRNNSequence", "_LookupRNNSequenceGrad", .gates = 1},
};

TEST(what_is_looked_up_gives_what_it_gave)
{
    static const int64_t tables[] = {1, 7, 15, 16, 40};
    for (int t = 0; t < ARRAY_LEN(tables); t++)
        for (int i = 0; i < 8 * ARRAY_LEN(forms); i++) {
            struct form form = forms[i / 8];
            form.variable = i & 1;
            form.rows = i & 2;
            form.length = i & 4 ? STEPS : STEPS - 2;
            form.table = tables[t];
            form.ids = i & 1 ? I64 : I32;
            check_form(&form);
        }
}

TEST(a_sequence_of_no_steps)
{
    struct form form = forms[1];
    form.variable = true;
    form.table = 3;
    form.ids = I32;
    check_form(&form);
}

TEST(an_index_that_is_not_in_the_table)
{
    static const int64_t bad[] = {-1, 7, INT64_MAX};
    const struct form form = {
        .op = "BlockLSTMV2", .variable = true, .table = 7, .length = STEPS, .ids = I64};
    begin();
    seed = 5;
    struct edge table, x, loss = make(&form, &table, &x);
    const char *feed = "ids";
    struct session *session = open_session(0, 2);
    const struct session_run first = {.targets = (const char *const[]){"set_table"},
                                      .targets_count = 1};
    CHECK_OK(session_run(session, &first, NULL, &err), &err);
    for (int i = 0; i < ARRAY_LEN(bad); i++) {
        struct tensor ids, out;
        CHECK_OK(tensor_init(&ids, I64, &SHAPE(STEPS, BATCH), &err), &err);
        memset(ids.data, 0, (size_t)ids.count * sizeof(int64_t));
        ((int64_t *)ids.data)[3] = bad[i];
        const struct session_run run = {.feeds = &feed,
                                        .feed_values = &ids,
                                        .feeds_count = 1,
                                        .fetches = &loss.from->name,
                                        .fetches_count = 1};
        CHECK(count_op(session, &run, "_LookupBlockLSTMV2") == 1);
        CHECK(!session_run(session, &run, &out, &err));
        CHECK_INT(err.code, INVALID);
        char text[80];
        snprintf(text, sizeof(text), "indices[3] = %lld is not in [0, 7)", (long long)bad[i]);
        CHECK(strstr(err.text, text));
        tensor_release(&ids);
    }
    session_free(session);
    graph_free(graph);
}

/* Who reads what was looked up besides finds it. */
TEST(what_others_read_is_looked_up)
{
    const struct form form = {
        .op = "BlockLSTM", .variable = true, .table = 7, .length = STEPS, .ids = I32};
    begin();
    seed = 5;
    struct edge table, x, loss = make(&form, &table, &x);
    struct tensor ids;
    CHECK_OK(tensor_init(&ids, I32, &SHAPE(STEPS, BATCH), &err), &err);
    memset(ids.data, 0, (size_t)ids.count * sizeof(int32_t));
    const char *feed = "ids", *fetches[] = {loss.from->name, x.from->name};
    const struct what what = {.run = {.feeds = &feed,
                                      .feed_values = &ids,
                                      .feeds_count = 1,
                                      .fetches = fetches,
                                      .fetches_count = 2},
                              .first = "set_table",
                              .runs = 1};
    check_count(&what, OPTIMISE_LOOKUP, "_LookupBlockLSTM", 0, 0);
    check_same_without(&what, OPTIMISE_LOOKUP, OPTIMISE_LOOKUP + 1);
    tensor_release(&ids);
    graph_free(graph);
}
