/*
 * tf_cases.c - TensorFlow's recorded answers: every graph is run here, every value compared.
 *
 *   tf-cases [--ref] [--threads N] [--no-optimise] [--without PASS,...] [--only TEXT]
 *            [--but TEXT] FILE.tfrecord...
 *   tf-cases --graphs FOLDER FILE.tfrecord...     writes each case's GraphDef there
 *   tf-cases --ops                                prints the name of each op that we can run
 *
 * Prints a line for each case that failed and for each op that is missing; exits 1 if any
 * failed.
 *
 * DESIGN: cases run in a child process, which writes one line per case into a pipe; when it
 * crashes or is silent for a minute, the case at hand has failed and a new child goes on behind
 * it.
 */

#include <complex.h>
#include <ftw.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.pb-c.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "kernels/list.h"
#include "proto/record.h"
#include "runtime/function_library.h"
#include "runtime/gradient.h"
#include "runtime/op.h"
#include "runtime/optimise.h"
#include "runtime/session.h"
#include "runtime/tensor_pb.h"

typedef Trainyard__Cases__Case Case;
typedef Trainyard__Cases__Run Run;
typedef Trainyard__Cases__Gradient Gradient;
typedef Trainyard__Cases__Tensor Expected;

#define CASE_TIMEOUT_MS 60000

static struct session_options options;
static const char *only; /* run cases whose name holds this, or NULL */
static const char *but;  /* leave out those whose name holds this, or NULL */

/* --- comparing --- */

static double complex number_at(const struct tensor *tensor, int64_t i)
{
    if (tensor->dtype == C64)
        return ((const float complex *)tensor->data)[i];
    if (tensor->dtype == C128)
        return ((const double complex *)tensor->data)[i];
    return tensor_number(tensor, i);
}

/* NaN equals NaN, an infinity only itself. */
static bool close_enough(double complex got, double complex want, double relative,
                         double absolute)
{
    bool got_nan = isnan(creal(got)) || isnan(cimag(got));
    bool want_nan = isnan(creal(want)) || isnan(cimag(want));
    if (got_nan || want_nan)
        return got_nan && want_nan;
    if (isinf(cabs(got)) || isinf(cabs(want)))
        return creal(got) == creal(want) && cimag(got) == cimag(want);
    return cabs(got - want) <= absolute + relative * cabs(want);
}

static bool compare_strings(const struct tensor *got, const struct tensor *want,
                            struct error *err)
{
    for (int64_t i = 0; i < want->count; i++) {
        const struct tensor_string *a = tensor_strings(got) + i, *b = tensor_strings(want) + i;
        if (a->size != b->size || (a->size && memcmp(a->data, b->data, a->size) != 0))
            return fail(err, DATA_LOSS, "[%lld] is \"%.*s\", not \"%.*s\"", (long long)i,
                        (int)(a->size < 60 ? a->size : 60), a->data,
                        (int)(b->size < 60 ? b->size : 60), b->data);
    }
    return true;
}

static bool compare_numbers(const struct tensor *got, const struct tensor *want,
                            double relative, double absolute, struct error *err)
{
    int64_t bad = 0, first = -1;
    size_t size = dtype_size(want->dtype);
    bool exact = relative == 0 && absolute == 0;
    for (int64_t i = 0; i < want->count; i++) {
        const char *a = (const char *)got->data + (size_t)i * size;
        const char *b = (const char *)want->data + (size_t)i * size;
        if (memcmp(a, b, size) == 0)
            continue;
        double complex x = number_at(got, i), y = number_at(want, i);
        bool both_nan = isnan(creal(x) + cimag(x)) && isnan(creal(y) + cimag(y));
        if (exact ? both_nan : close_enough(x, y, relative, absolute))
            continue;
        if (first < 0)
            first = i;
        bad++;
    }
    if (bad == 0)
        return true;
    double complex x = number_at(got, first), y = number_at(want, first);
    return fail(err, DATA_LOSS,
                "[%lld] is %.9g%+.9gi, not %.9g%+.9gi: differs by %.3g, allowed %.3g (%lld of "
                "%lld differ)",
                (long long)first, creal(x), cimag(x), creal(y), cimag(y), cabs(x - y),
                absolute + relative * cabs(y), (long long)bad, (long long)want->count);
}

static bool compare(const struct tensor *got, const struct tensor *want, const Expected *how,
                    struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (got->dtype != want->dtype)
        return fail(err, DATA_LOSS, "is of type %s, not %s", dtype_name(got->dtype),
                    dtype_name(want->dtype));
    if (!shape_equal(&got->shape, &want->shape))
        return fail(err, DATA_LOSS, "has shape %s, not %s",
                    shape_text(&got->shape, a, sizeof(a)),
                    shape_text(&want->shape, b, sizeof(b)));
    if (how->shape_only || want->dtype == RESOURCE)
        return true;
    if (want->dtype == STRING)
        return compare_strings(got, want, err);
    return compare_numbers(got, want, how->relative, how->absolute, err);
}

/* --- the folder of a case --- */

/* Every `from` in the elements becomes `to`. */
static void replace_in_strings(struct tensor *tensor, const char *from, const char *to)
{
    size_t from_size = strlen(from);
    for (int64_t i = 0; tensor->dtype == STRING && i < tensor->count; i++) {
        const struct tensor_string *text = tensor_strings(tensor) + i;
        struct str out = {0};
        bool found = false;
        for (size_t at = 0; at < text->size;) {
            if (text->size - at >= from_size && memcmp(text->data + at, from, from_size) == 0) {
                str_add(&out, to);
                at += from_size;
                found = true;
            } else {
                str_add_char(&out, text->data[at++]);
            }
        }
        if (found)
            tensor_set_string(tensor, i, str_text(&out), out.size);
        str_release(&out);
    }
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

/* --- running --- */

struct world {
    const Case *c;
    struct session *session;
    char folder[64];
};

static bool read_tensors(Expected *const *from, size_t count, const struct world *world,
                         struct tensor *out, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!tensor_parse(&out[i], from[i]->tensor.data, from[i]->tensor.len, err))
            return error_prefix(err, "tensor '%s'", from[i]->name);
        replace_in_strings(&out[i], "$TMP", world->folder);
    }
    return true;
}

static void release_tensors(struct tensor *tensors, size_t count)
{
    for (size_t i = 0; tensors && i < count; i++)
        tensor_release(&tensors[i]);
    free(tensors);
}

/*
 * What is both fed and fetched, the Python client answers itself, without asking the session; a
 * recorded answer without error was made so.  Returns the names that are left.
 */
static int take_fed(const Run *run, const struct tensor *feeds, struct tensor *fetched,
                    const char **names, size_t *places)
{
    int count = 0;
    for (size_t i = 0; i < run->n_fetch; i++) {
        size_t f = 0;
        while (f < run->n_feed && strcmp(run->feed[f]->name, run->fetch[i]) != 0)
            f++;
        if (f < run->n_feed && run->error_code == 0) {
            tensor_share(&fetched[i], &feeds[f]);
            continue;
        }
        names[count] = run->fetch[i];
        places[count++] = i;
    }
    return count;
}

static bool extend_and_run(struct world *world, const Run *run, const struct tensor *feeds,
                           struct tensor *fetched, struct error *err)
{
    if (run->extend.len) {
        if (!session_extend(world->session, run->extend.data, run->extend.len, err))
            return false;
        if (run->n_fetch == 0 && run->n_target == 0)
            return true;
    }
    const char **names = alloc_array(run->n_feed + 1, sizeof(*names));
    const char **fetches = alloc_array(run->n_fetch + 1, sizeof(*fetches));
    size_t *places = alloc_array(run->n_fetch + 1, sizeof(*places));
    struct tensor *answers = alloc_array(run->n_fetch + 1, sizeof(*answers));
    for (size_t i = 0; i < run->n_feed; i++)
        names[i] = run->feed[i]->name;
    const struct session_run what = {
        .feeds = names,
        .feed_values = feeds,
        .feeds_count = (int)run->n_feed,
        .fetches = fetches,
        .fetches_count = take_fed(run, feeds, fetched, fetches, places),
        .targets = (const char *const *)run->target,
        .targets_count = (int)run->n_target,
    };
    bool all_fed = run->n_fetch > 0 && what.fetches_count == 0 && run->n_target == 0;
    bool ok = all_fed || session_run(world->session, &what, answers, err);
    for (int i = 0; ok && i < what.fetches_count; i++)
        fetched[places[i]] = answers[i];
    free(answers);
    free(places);
    free(fetches);
    free(names);
    return ok;
}

static bool compare_all(struct world *world, Expected *const *expect, size_t count,
                        struct tensor *got, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        struct tensor want = {0};
        if (!tensor_parse(&want, expect[i]->tensor.data, expect[i]->tensor.len, err))
            return false;
        replace_in_strings(&got[i], world->folder, "$TMP");
        bool same = compare(&got[i], &want, expect[i], err);
        tensor_release(&want);
        if (!same)
            return error_prefix(err, "%s ", expect[i]->name);
    }
    return true;
}

static bool run_once(struct world *world, const Run *run, struct error *err)
{
    struct tensor *feeds = alloc_array(run->n_feed + 1, sizeof(*feeds));
    struct tensor *fetched = alloc_array(run->n_fetch + 1, sizeof(*fetched));
    bool ok = read_tensors(run->feed, run->n_feed, world, feeds, err);
    if (ok) {
        struct error failure = {0};
        bool ran = extend_and_run(world, run, feeds, fetched, &failure);
        int code = ran ? 0 : (int)failure.code;
        if (code != run->error_code && ran)
            ok = fail(err, DATA_LOSS, "succeeded, not %s (%.200s)",
                      error_code_name((enum error_code)run->error_code), run->error_text);
        else if (code != run->error_code)
            ok = fail(err, DATA_LOSS, "%s: %.300s; not %s (%.200s)",
                      error_code_name(failure.code), failure.text,
                      error_code_name((enum error_code)run->error_code), run->error_text);
        else if (ran)
            ok = compare_all(world, run->expect, run->n_expect, fetched, err);
    }
    release_tensors(feeds, run->n_feed);
    release_tensors(fetched, run->n_fetch);
    return ok;
}

/* --- gradients by our own autodiff, in a session with the same state --- */

/* Runs all that was run before, for the state it leaves: variables, random streams. */
static void replay(const struct world *world, struct session *session)
{
    struct world other = *world;
    struct error ignored;
    other.session = session;
    for (size_t i = 0; i < world->c->n_run; i++) {
        Run run = *world->c->run[i];
        run.extend.len = 0;
        if (run.n_fetch || run.n_target)
            (void)!run_once(&other, &run, &ignored);
    }
}

static bool add_gradients(struct graph *graph, const struct world *world,
                          const Gradient *gradient, struct edge *grads, struct error *err)
{
    struct builder build = {.graph = graph, .scope = "", .err = err};
    struct edge *ys = alloc_array(gradient->n_y + 1, sizeof(*ys));
    struct edge *grad_ys = alloc_array(gradient->n_y + 1, sizeof(*grad_ys));
    struct edge *xs = alloc_array(gradient->n_x + 1, sizeof(*xs));
    struct tensor *values = alloc_array(gradient->n_grad_y + 1, sizeof(*values));
    bool ok = read_tensors(gradient->grad_y, gradient->n_grad_y, world, values, err);
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
    release_tensors(values, gradient->n_grad_y);
    free(ys);
    free(grad_ys);
    free(xs);
    return ok;
}

/* Fetches the gradients that exist; the others must be expected not to. */
static bool fetch_gradients(struct world *world, struct session *session,
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
    struct world other = *world;
    other.session = session;
    if (ok && run.n_fetch > 0)
        ok = run_once(&other, &run, err) || error_prefix(err, "gradient of ");
    for (size_t i = 0; i < run.n_fetch; i++)
        free(fetch[i]);
    free(fetch);
    free(expect);
    return ok;
}

static bool run_gradient(struct world *world, const Gradient *gradient, struct error *err)
{
    struct graph *graph = graph_new();
    struct edge *grads = alloc_array(gradient->n_x + 1, sizeof(*grads));
    struct session *session = session_new(&options, err);
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

/* --- one case --- */

static bool run_parts(struct world *world, struct error *err)
{
    const Case *c = world->c;
    struct error failure = {0};
    bool made = session_extend(world->session, c->graph.data, c->graph.len, &failure);
    int code = made ? 0 : (int)failure.code;
    if (code != c->graph_error_code)
        return fail(err, DATA_LOSS, "graph: %s %.300s; not %s (%.200s)",
                    error_code_name((enum error_code)code), failure.text,
                    error_code_name((enum error_code)c->graph_error_code), c->graph_error_text);
    if (!made)
        return true;
    for (size_t i = 0; i < c->n_run; i++)
        if (!run_once(world, c->run[i], err))
            return error_prefix(err, "run %zu: ", i);
    for (size_t i = 0; i < c->n_gradient; i++)
        if (!run_gradient(world, c->gradient[i], err))
            return error_prefix(err, "gradient %zu: ", i);
    return true;
}

static bool run_case(const Case *c, struct error *err)
{
    struct world world = {.c = c, .folder = "/tmp/tf-cases-XXXXXX"};
    if (!mkdtemp(world.folder))
        return error_errno(err, INTERNAL, "cannot make the folder %s", world.folder);
    world.session = session_new(&options, err);
    bool ok = world.session && run_parts(&world, err);
    session_free(world.session);
    nftw(world.folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return ok;
}

/* --- ops that are missing --- */

static struct map *with_kernel;

static void find_kernels(void)
{
    with_kernel = map_new();
    for (int t = 0;; t++) {
        if (!kernel_at(t, 0))
            break;
        for (int i = 0; kernel_at(t, i); i++)
            map_set(with_kernel, kernel_at(t, i)->op, (void *)kernel_at(t, i));
    }
}

/* Whether it is the name of a function that the graph carries. */
static bool is_function(const Case *c, const char *name)
{
    struct error ignored;
    struct graph *graph = graph_new();
    bool found = graph_import(graph, c->graph.data, c->graph.len, &ignored) &&
                 function_library_find(graph_library(graph), name);
    graph_free(graph);
    return found;
}

/* A case about unknown ops names ops that nobody has. */
static bool is_about_unknown_ops(const Case *c)
{
    bool about = c->graph_error_code == NOT_FOUND;
    for (size_t i = 0; i < c->n_run; i++)
        about |= c->run[i]->error_code == NOT_FOUND;
    return about;
}

/* "op op ..." of those missing; empty: none. */
static void missing_ops(const Case *c, struct str *out)
{
    for (size_t i = 0; i < c->n_op && !is_about_unknown_ops(c); i++)
        if ((!op_find(c->op[i]) ||
             !(op_find(c->op[i])->flow || map_has(with_kernel, c->op[i]))) &&
            !is_function(c, c->op[i]))
            str_printf(out, "%s%s", out->size ? " " : "", c->op[i]);
}

/* --- child and parent --- */

struct records {
    char *bytes;
    size_t size;
    size_t *offsets; /* of each record, and the end */
    int count;
};

static bool read_records(const char *path, struct records *records, struct error *err)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return error_errno(err, NOT_FOUND, "%s", path);
    struct str bytes = {0};
    char block[65536];
    for (size_t n; (n = fread(block, 1, sizeof(block), file)) > 0;)
        str_add_bytes(&bytes, block, n);
    fclose(file);
    *records = (struct records){.size = bytes.size};
    records->bytes = str_take(&bytes);
    int capacity = 0;
    for (size_t at = 0; at < records->size;) {
        const void *data;
        size_t size, used = 0;
        enum record_result result = record_parse(records->bytes + at, records->size - at,
                                                 (int64_t)at, &data, &size, &used, err);
        if (result != RECORD_OK)
            return result == RECORD_BAD ||
                   fail(err, DATA_LOSS, "%s: a record is cut off", path);
        records->offsets =
            alloc_grow(records->offsets, records->count, &capacity, sizeof(size_t));
        records->offsets[records->count++] = at;
        at += used;
    }
    return true;
}

static Case *unpack_case(const struct records *records, int index)
{
    const void *data;
    size_t size, used, at = records->offsets[index];
    struct error err;
    if (record_parse(records->bytes + at, records->size - at, (int64_t)at, &data, &size, &used,
                     &err) != RECORD_OK)
        return NULL;
    return trainyard__cases__case__unpack(NULL, size, data);
}

/* One line per case: "P", "F why", "S ops". */
static _Noreturn void child_main(const struct records *records, int from, int out)
{
    FILE *report = fdopen(out, "w");
    for (int i = from; i < records->count; i++) {
        Case *c = unpack_case(records, i);
        struct str missing = {0};
        struct error err = {0};
        fprintf(report, "C %s\n", c ? c->name : "?");
        fflush(report);
        if (c)
            missing_ops(c, &missing);
        if (!c)
            fprintf(report, "F not a Case\n");
        else if ((only && !strstr(c->name, only)) || (but && strstr(c->name, but)))
            fprintf(report, "O\n");
        else if (missing.size)
            fprintf(report, "S %s\n", str_text(&missing));
        else if (run_case(c, &err))
            fprintf(report, "P\n");
        else {
            for (char *p = err.text; *p; p++)
                *p = *p == '\n' ? ' ' : *p;
            fprintf(report, "F %s\n", err.text);
        }
        fflush(report);
        str_release(&missing);
        if (c)
            trainyard__cases__case__free_unpacked(c, NULL);
    }
    fclose(report);
    exit(0);
}

struct totals {
    int passed, failed, skipped;
    struct map *missing; /* op -> int* */
};

static void count_missing(struct totals *totals, char *ops)
{
    char *rest;
    for (char *op = strtok_r(ops, " ", &rest); op; op = strtok_r(NULL, " ", &rest)) {
        int *count = map_find(totals->missing, op);
        if (!count) {
            count = alloc_bytes(sizeof(*count));
            map_set(totals->missing, op, count);
        }
        ++*count;
    }
}

/* Takes in one line; returns 1 when it ends a case. */
static int take_line(struct totals *totals, char *line, char *name, size_t name_size)
{
    switch (line[0]) {
    case 'C':
        snprintf(name, name_size, "%s", line + 2);
        return 0;
    case 'P':
        totals->passed++;
        return 1;
    case 'S':
        totals->skipped++;
        count_missing(totals, line + 2);
        return 1;
    case 'F':
        totals->failed++;
        printf("FAIL %s: %s\n", name, line + 2);
        return 1;
    default:
        return 1;
    }
}

/* Reads a child's lines until it ends or hangs; returns how many cases it has finished. */
static int follow(int in, pid_t child, struct totals *totals)
{
    struct str lines = {0};
    char name[300] = "", block[4096];
    int done = 0;
    bool in_case = false, timed_out = false;
    for (;;) {
        struct pollfd poller = {.fd = in, .events = POLLIN};
        if (poll(&poller, 1, CASE_TIMEOUT_MS) == 0) {
            timed_out = true;
            kill(child, SIGKILL);
            break;
        }
        ssize_t n = read(in, block, sizeof(block));
        if (n <= 0)
            break;
        str_add_bytes(&lines, block, (size_t)n);
        for (char *end; lines.size && (end = memchr(lines.data, '\n', lines.size));) {
            *end = 0;
            in_case = take_line(totals, lines.data, name, sizeof(name)) == 0;
            done += !in_case;
            str_drop(&lines, (size_t)(end - lines.data) + 1);
        }
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (in_case) {
        totals->failed++;
        done++;
        printf("FAIL %s: %s (status %d)\n", name, timed_out ? "no answer in 60 s" : "crashed",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    str_release(&lines);
    return done;
}

/* Writes the graph of every case of the file into a folder: seeds for the fuzzer. */
static void write_graphs(const char *path, const char *folder)
{
    struct records records = {0};
    struct error err = {0};
    if (!read_records(path, &records, &err)) {
        printf("%s: %s\n", path, err.text);
        return;
    }
    const char *slash = strrchr(path, '/');
    for (int i = 0; i < records.count; i++) {
        Case *c = unpack_case(&records, i);
        struct str name = {0};
        str_printf(&name, "%s/%s-%d", folder, slash ? slash + 1 : path, i);
        FILE *file = c && c->graph.len ? fopen(str_text(&name), "wb") : NULL;
        if (file) {
            fwrite(c->graph.data, 1, c->graph.len, file);
            fclose(file);
        }
        str_release(&name);
        if (c)
            trainyard__cases__case__free_unpacked(c, NULL);
    }
    free(records.bytes);
    free(records.offsets);
}

/* The ops that have a kernel, or are the executor's own. */
static void print_ops(void)
{
    for (int i = 0; i < op_count(); i++)
        if (op_at(i)->flow || map_has(with_kernel, op_at(i)->name))
            printf("%s\n", op_at(i)->name);
}

static bool run_file(const char *path, struct totals *totals)
{
    struct records records = {0};
    struct error err = {0};
    if (!read_records(path, &records, &err)) {
        printf("FAIL %s: %s\n", path, err.text);
        totals->failed++;
        return false;
    }
    for (int next = 0; next < records.count;) {
        int ends[2];
        if (pipe(ends) != 0)
            return false;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            close(ends[0]);
            child_main(&records, next, ends[1]);
        }
        close(ends[1]);
        int done = child > 0 ? follow(ends[0], child, totals) : 0;
        close(ends[0]);
        if (done == 0) {
            printf("FAIL %s: the child does not start\n", path);
            totals->failed++;
            break;
        }
        next += done;
    }
    free(records.bytes);
    free(records.offsets);
    return true;
}

int main(int argc, char **argv)
{
    struct totals totals = {.missing = map_new()};
    bool ref_only = false;
    const char *graphs = NULL;
    int first = 1;
    if (argc == 2 && strcmp(argv[1], "--ops") == 0) {
        kernels_add(false);
        find_kernels();
        print_ops();
        return 0;
    }
    for (; first < argc && strncmp(argv[first], "--", 2) == 0; first++) {
        if (strcmp(argv[first], "--ref") == 0)
            ref_only = true;
        else if (strcmp(argv[first], "--no-optimise") == 0)
            options.no_optimise = true;
        else if (strcmp(argv[first], "--without") == 0 && first + 1 < argc &&
                 optimise_parse(argv[first + 1], &options.passes_off))
            first++;
        else if (strcmp(argv[first], "--threads") == 0 && first + 1 < argc)
            options.threads = (int)strtol(argv[++first], NULL, 10);
        else if (strcmp(argv[first], "--only") == 0 && first + 1 < argc)
            only = argv[++first];
        else if (strcmp(argv[first], "--but") == 0 && first + 1 < argc)
            but = argv[++first];
        else if (strcmp(argv[first], "--graphs") == 0 && first + 1 < argc)
            graphs = argv[++first];
        else
            break;
    }
    if (first >= argc || argv[first][0] == '-') {
        fprintf(stderr, "usage: tf-cases [--ref] [--threads N] [--no-optimise] "
                        "[--without PASS,...] [--only TEXT] [--but TEXT] FILE.tfrecord...\n");
        return 2;
    }
    if (graphs) {
        for (; first < argc; first++)
            write_graphs(argv[first], graphs);
        return 0;
    }
    kernels_add(ref_only);
    find_kernels();
    for (; first < argc; first++)
        run_file(argv[first], &totals);
    for (int i = 0; i < map_count(totals.missing); i++) {
        int *cases = map_value(totals.missing, i);
        printf("missing %s: %d cases\n", map_key(totals.missing, i), *cases);
        free(cases);
    }
    map_free(totals.missing);
    map_free(with_kernel);
    printf("%d passed, %d failed, %d skipped\n", totals.passed, totals.failed, totals.skipped);
    return totals.failed > 0;
}
