/* decompose_test.c - matrices factored are their factors' product; transforms undo each other.
 */

#include <complex.h>
#include <math.h>

#include "kernels/list.h"
#include "runtime/builder.h"
#include "runtime/session.h"
#include "tests/unit/test.h"

static struct error err;

struct world {
    struct graph *graph;
    struct builder b;
};

static struct world world_new(void)
{
    static bool added;
    if (!added)
        kernels_add(false);
    added = true;
    struct world w = {.graph = graph_new()};
    w.b = (struct builder){.graph = w.graph, .scope = "", .err = &err};
    return w;
}

/* Numbers that nothing makes special, the same in every run. */
static struct edge numbers(struct world *w, const struct shape *shape, int seed)
{
    struct tensor tensor;
    CHECK_OK(tensor_init(&tensor, F64, shape, &err), &err);
    for (int64_t i = 0; i < tensor.count; i++)
        tensor_set_number(&tensor, i, sin(1.7 * (double)i * (double)i + seed) * 3);
    struct edge edge = builder_const(&w->b, "numbers", &tensor);
    tensor_release(&tensor);
    return edge;
}

static struct edge one_of(struct world *w, const char *op, struct edge x)
{
    return builder_add(&w->b, op, op, INPUTS(x), NO_ATTRS);
}

static struct edge product(struct world *w, struct edge a, bool adj_a, struct edge b,
                           bool adj_b)
{
    return builder_add(&w->b, "BatchMatMulV2", "product", INPUTS(a, b),
                       ATTRS(attr_bool("adj_x", adj_a), attr_bool("adj_y", adj_b)));
}

/* Both edges are the same, element by element. */
static void check_same(struct world *w, struct edge a, struct edge b)
{
    if (!builder_ok(&w->b))
        CHECK_STOP("%s", err.text);
    struct session *session = session_new(&(struct session_options){.threads = 1}, &err);
    CHECK(session);
    CHECK_OK(session_extend_graph(session, w->graph, &err), &err);
    char names[2][80];
    snprintf(names[0], sizeof(names[0]), "%s:%d", a.from->name, a.output);
    snprintf(names[1], sizeof(names[1]), "%s:%d", b.from->name, b.output);
    struct tensor out[2];
    const char *fetches[] = {names[0], names[1]};
    CHECK_OK(session_run(session, &(struct session_run){.fetches = fetches, .fetches_count = 2},
                         out, &err),
             &err);
    CHECK_INT(out[0].count, out[1].count);
    for (int64_t i = 0; i < out[0].count; i++) {
        double difference = fabs(tensor_number(&out[0], i) - tensor_number(&out[1], i));
        if (!(difference < 1e-9))
            CHECK_STOP("%s [%d]: %g is not %g", names[0], (int)i, tensor_number(&out[0], i),
                       tensor_number(&out[1], i));
    }
    tensor_release(&out[0]);
    tensor_release(&out[1]);
    session_free(session);
    graph_free(w->graph);
}

static const struct shape tall = {.rank = 3, .dims = {2, 5, 3}};
static const struct shape square = {.rank = 3, .dims = {2, 4, 4}};

TEST(q_times_r_is_the_matrix)
{
    struct world w = world_new();
    struct edge a = numbers(&w, &tall, 1), q = one_of(&w, "Qr", a);
    check_same(&w, product(&w, q, false, builder_output(q, 1), false), a);
}

TEST(q_is_orthogonal)
{
    struct world w = world_new();
    struct edge q = one_of(&w, "Qr", numbers(&w, &square, 2));
    check_same(&w, product(&w, q, true, q, false), product(&w, q, false, q, true));
}

TEST(singular_vectors_and_values_make_the_matrix)
{
    for (int turned = 0; turned < 2; turned++) {
        struct world w = world_new();
        struct shape shape = tall;
        shape.dims[1 + turned] = 3;
        shape.dims[2 - turned] = 5;
        struct edge a = numbers(&w, &shape, 3), s = one_of(&w, "Svd", a);
        struct edge left =
            product(&w, builder_output(s, 1), false, one_of(&w, "MatrixDiag", s), false);
        check_same(&w, product(&w, left, false, builder_output(s, 2), true), a);
    }
}

TEST(a_self_adjoint_matrix_turns_its_vectors_by_its_values)
{
    struct world w = world_new();
    struct edge a = numbers(&w, &square, 4);
    a = product(&w, a, false, a, true);
    struct edge e = one_of(&w, "SelfAdjointEigV2", a), v = builder_output(e, 1);
    check_same(&w, product(&w, a, false, v, false),
               product(&w, v, false, one_of(&w, "MatrixDiag", e), false));
}

TEST(a_root_times_itself_is_the_matrix)
{
    struct world w = world_new();
    struct edge a = numbers(&w, &square, 5);
    a = product(&w, a, false, a, true);
    struct edge root = one_of(&w, "MatrixSquareRoot", a);
    check_same(&w, product(&w, root, false, root, false), a);
}

/* The residual of least squares is orthogonal to all columns. */
TEST(least_squares_leave_what_no_column_has)
{
    struct world w = world_new();
    struct edge a = numbers(&w, &tall, 6), b = numbers(&w, &tall, 7);
    struct edge x = builder_add(&w.b, "MatrixSolveLs", "solve",
                                INPUTS(a, b, builder_scalar(&w.b, "l2", F64, 0)), NO_ATTRS);
    struct edge ax = product(&w, a, false, x, false);
    check_same(&w, product(&w, a, true, ax, false), product(&w, a, true, b, false));
}

/* By the definition, for lengths of every kind: powers of two, primes, products. */
TEST(a_transform_is_its_sum)
{
    for (int64_t n = 1; n <= 24; n++) {
        struct world w = world_new();
        struct tensor whole[2];
        for (int i = 0; i < 2; i++)
            CHECK_OK(tensor_init(&whole[i], C128, &SHAPE(n), &err), &err);
        double complex *x = whole[0].data, *y = whole[1].data;
        for (int64_t k = 0; k < n; k++)
            x[k] = sin(3.0 * (double)k) + I * cos(5.0 * (double)k);
        for (int64_t k = 0; k < n; k++) {
            y[k] = 0;
            for (int64_t i = 0; i < n; i++)
                y[k] += x[i] * cexp(-2 * M_PI * I * (double)(i * k % n) / (double)n);
        }
        struct edge in = builder_const(&w.b, "in", &whole[0]);
        struct edge out = builder_const(&w.b, "out", &whole[1]);
        struct edge off =
            builder_add(&w.b, "Sub", "off", INPUTS(one_of(&w, "FFT", in), out), NO_ATTRS);
        struct edge back =
            builder_add(&w.b, "Sub", "off", INPUTS(one_of(&w, "IFFT", out), in), NO_ATTRS);
        struct edge sizes =
            builder_add(&w.b, "ComplexAbs", "size",
                        INPUTS(builder_add(&w.b, "AddV2", "sum", INPUTS(off, back), NO_ATTRS)),
                        ATTRS(attr_type("Tout", F64)));
        check_same(&w, sizes, one_of(&w, "ZerosLike", sizes));
        tensor_release(&whole[0]);
        tensor_release(&whole[1]);
    }
}

/* A few values of tables. */
TEST(functions_have_their_known_values)
{
    static const struct {
        const char *op;
        double x, y;
    } known[] = {{"BesselI0", 1, 1.2660658777520084},   {"BesselI1", 1, 0.5651591039924851},
                 {"BesselK0", 1, 0.42102443824070834},  {"BesselK1", 2, 0.13986588181652243},
                 {"BesselJ0", 1, 0.7651976865579666},   {"BesselY1", 1, -0.7812128213002887},
                 {"Dawsn", 1, 0.5380795069127684},      {"Expint", 1, 1.8951178163559368},
                 {"FresnelCos", 1, 0.7798934003768228}, {"FresnelSin", 1, 0.4382591473903548},
                 {"Spence", 2, -0.8224670334241132}};
    for (int i = 0; i < ARRAY_LEN(known); i++) {
        struct world w = world_new();
        struct edge x = builder_scalar(&w.b, "x", F64, known[i].x);
        check_same(&w, one_of(&w, known[i].op, x), builder_scalar(&w.b, "y", F64, known[i].y));
    }
}

/* exp(-x) (1 + x + x^2 / 2) is what is above x of the gamma distribution with a = 3. */
TEST(incomplete_gamma_of_whole_numbers_is_a_sum)
{
    struct world w = world_new();
    double x = 2.5;
    struct edge above = builder_add(
        &w.b, "Igammac", "above",
        INPUTS(builder_scalar(&w.b, "a", F64, 3), builder_scalar(&w.b, "x", F64, x)), NO_ATTRS);
    check_same(&w, above, builder_scalar(&w.b, "sum", F64, exp(-x) * (1 + x + x * x / 2)));
}
