/* case_gradient.c - gradients by our own autodiff, in a session with the same state. */

#include "tests/interop/cases/cases.h"

#include "base/alloc.h"
#include "runtime/builder.h"
#include "runtime/gradient.h"
#include "runtime/graph.h"
#include "runtime/tensor_pb.h"

/* Runs all that was run before, for the state it leaves: variables, random streams. */
static void replay(const struct case_world *world, struct session *session)
{
    struct case_world other = *world;
    struct error ignored;
    other.session = session;
    for (size_t i = 0; i < world->c->n_run; i++) {
        Run run = *world->c->run[i];
        run.extend.len = 0;
        if (run.n_fetch || run.n_target)
            (void)!case_run_once(&other, &run, &ignored);
    }
}

static bool add_gradients(struct graph *graph, const struct case_world *world,
                          const Gradient *gradient, struct edge *grads, struct error *err)
{
    struct builder build = {.graph = graph, .scope = "", .err = err};
    struct edge *ys = alloc_array(gradient->n_y + 1, sizeof(*ys));
    struct edge *grad_ys = alloc_array(gradient->n_y + 1, sizeof(*grad_ys));
    struct edge *xs = alloc_array(gradient->n_x + 1, sizeof(*xs));
    struct tensor *values = alloc_array(gradient->n_grad_y + 1, sizeof(*values));
    bool ok = case_read_tensors(gradient->grad_y, gradient->n_grad_y, world, values, err);
    for (size_t i = 0; ok && i < gradient->n_y; i++)
        ok = graph_edge(graph, gradient->y[i], &ys[i], err);
    for (size_t i = 0; ok && i < gradient->n_x; i++)
        ok = graph_edge(graph, gradient->x[i], &xs[i], err);
    for (size_t i = 0; ok && i < gradient->n_grad_y; i++)
        if (values[i].dtype != DTYPE_NONE)
            grad_ys[i] = builder_const(&build, "grad_y", &values[i]);
    ok = ok && builder_ok(&build);
    ok = ok && gradient_build(graph, ys, (int)gradient->n_y, grad_ys, xs, (int)gradient->n_x,
                              grads, err);
    case_release_tensors(values, gradient->n_grad_y);
    free(ys);
    free(grad_ys);
    free(xs);
    return ok;
}

/* Fetches the gradients that exist; the others must be expected not to. */
static bool fetch_gradients(struct case_world *world, struct session *session,
                            const Gradient *gradient, const struct edge *grads,
                            struct error *err)
{
    Run run = TRAINYARD__CASES__RUN__INIT;
    Expected **expect = alloc_array(gradient->n_expect + 1, sizeof(*expect));
    char **fetch = alloc_array(gradient->n_expect + 1, sizeof(*fetch));
    bool ok = true;
    for (size_t i = 0; ok && i < gradient->n_expect; i++) {
        bool wanted = gradient->expect[i]->tensor.len > 0;
        if (wanted != (grads[i].from != NULL)) {
            ok = fail(err, DATA_LOSS, "d/d %s: %s", gradient->x[i],
                      wanted ? "there is no gradient" : "there should be no gradient");
        } else if (wanted) {
            expect[run.n_expect++] = gradient->expect[i];
            fetch[run.n_fetch++] = alloc_printf("%s:%d", grads[i].from->name, grads[i].output);
        }
    }
    run.expect = expect;
    run.fetch = fetch;
    run.feed = gradient->feed;
    run.n_feed = gradient->n_feed;
    struct case_world other = *world;
    other.session = session;
    if (ok && run.n_fetch > 0)
        ok = case_run_once(&other, &run, err) || error_prefix(err, "gradient of ");
    for (size_t i = 0; i < run.n_fetch; i++)
        free(fetch[i]);
    free(fetch);
    free(expect);
    return ok;
}

bool case_gradient(struct case_world *world, const Gradient *gradient, struct error *err)
{
    struct graph *graph = graph_new();
    struct edge *grads = alloc_array(gradient->n_x + 1, sizeof(*grads));
    struct session *session = session_new(&world->how->options, err);
    bool ok = session && graph_import(graph, world->c->graph.data, world->c->graph.len, err);
    for (size_t i = 0; ok && i < world->c->n_run; i++)
        if (world->c->run[i]->extend.len && world->c->run[i]->error_code == 0)
            ok = graph_import(graph, world->c->run[i]->extend.data,
                              world->c->run[i]->extend.len, err);
    ok = ok && add_gradients(graph, world, gradient, grads, err);
    ok = ok && session_extend_graph(session, graph, err);
    if (ok)
        replay(world, session);
    ok = ok && fetch_gradients(world, session, gradient, grads, err);
    session_free(session);
    graph_free(graph);
    free(grads);
    return ok;
}
