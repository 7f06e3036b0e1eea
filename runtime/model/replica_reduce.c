/* replica_reduce.c - all-reduce among workers, in the graph: rings of pieces, and trees. */

#include "base/arena.h"
#include "runtime/model/replica.h"
#include "runtime/op.h"
#include "runtime/spec/spec.h"
#include "runtime/tensor.h"

/* More of them would wait less for the slowest layer, but each costs its way around. */
#define BUCKET_BYTES (4 << 20)

/* From here on a gradient goes alone: to be put together and taken apart again would cost more
 * than a way of its own, on which it can be as soon as it is there. */
#define ALONE_BYTES (256 << 10)

/* A piece below this is on its way for longer than it takes to send. */
#define PIECE_BYTES_MIN (64 << 10)

/* Numbers of a row that go together. */
#define PIECE_UNIT (TENSOR_ALIGN / (int64_t)sizeof(float))

struct reduce {
    struct build *m;
    const char *const *devices; /* of the workers */
    int workers;
    enum dtype dtype;   /* in which everything travels */
    const int *weights; /* of each gradient */
    int *members;       /* of the bucket that is reduced: its gradients */
    int members_count;
    struct edge *const *grads; /* by worker */
};

/* --- from one worker to another --- */

static struct edge pack(struct reduce *r, struct edge x, int worker)
{
    r->m->b.device = r->devices[worker];
    return r->dtype == F32 ? x : build_cast(r->m, x, r->dtype);
}

static struct edge unpack(struct reduce *r, struct edge x, int worker)
{
    r->m->b.device = r->devices[worker];
    return r->dtype == F32 ? x : build_cast(r->m, x, F32);
}

/* Stops over at `worker`, who passes it on. */
static struct edge pass_on(struct reduce *r, struct edge x, int worker)
{
    r->m->b.device = r->devices[worker];
    return build_unary(r->m, "Identity", x);
}

static struct edge mean_of(struct reduce *r, struct edge sum, int worker)
{
    r->m->b.device = r->devices[worker];
    return build_with_number(r->m, "Mul", sum, 1.0 / r->workers);
}

/*
 * Piece number `piece`: its sum ends at the worker of that number, after it has been at all
 * others; then the mean goes around.  Into means[worker].
 */
static void ring(struct reduce *r, const struct edge *own, int piece, struct edge *means)
{
    int n = r->workers;
    struct edge sum = own[(piece + 1) % n];
    for (int step = 2; step <= n; step++) {
        int worker = (piece + step) % n;
        struct edge sent = pack(r, sum, (worker + n - 1) % n);
        struct edge come = unpack(r, sent, worker);
        sum = build_binary(r->m, "AddV2", come, own[worker]);
    }
    struct edge mean = pack(r, mean_of(r, sum, piece), piece);
    means[piece] = unpack(r, mean, piece);
    for (int step = 1; step < n; step++) {
        int worker = (piece + step) % n;
        mean = pass_on(r, mean, worker);
        means[worker] = unpack(r, mean, worker);
    }
}

/* Worker w has workers 2 w + 1 and 2 w + 2 below it. */
static void tree(struct reduce *r, const struct edge *own, struct edge *means)
{
    int n = r->workers;
    struct edge *sums = arena_copy(r->m->arena, own, (size_t)n * sizeof(*sums));
    struct edge *sent = arena_array(r->m->arena, (size_t)n, sizeof(*sent));
    for (int w = n - 1; w >= 0; w--) {
        for (int child = 2 * w + 1; child <= 2 * w + 2 && child < n; child++) {
            struct edge come = unpack(r, pack(r, sums[child], child), w);
            sums[w] = build_binary(r->m, "AddV2", sums[w], come);
        }
    }
    sent[0] = pack(r, mean_of(r, sums[0], 0), 0);
    means[0] = unpack(r, sent[0], 0);
    for (int w = 1; w < n; w++) {
        sent[w] = pass_on(r, sent[(w - 1) / 2], w);
        means[w] = unpack(r, sent[w], w);
    }
}

/* --- a bucket: one row of numbers for some gradients --- */

static int64_t numbers_of(const struct reduce *r, int index)
{
    return shape_count(&r->m->weights[r->weights[index]].face.shape);
}

static struct edge flat(struct reduce *r, struct edge x)
{
    static const int64_t row = -1;
    return build_reshape(r->m, x, &row, 1);
}

/* Parts of a row with these sizes: the first output of the node, the others follow. */
static struct edge cut(struct reduce *r, struct edge row, const int64_t *sizes, int count)
{
    struct build *m = r->m;
    struct edge lengths = build_ints(m, sizes, count);
    struct edge axis = builder_scalar(&m->b, "axis", I32, 0);
    return count == 1 ? row
                      : builder_add(&m->b, "SplitV", "SplitV", INPUTS(row, lengths, axis),
                                    ATTRS(attr_int("num_split", count)));
}

/* The bucket's gradients of one worker. */
static struct edge gather(struct reduce *r, int worker)
{
    struct edge *rows = arena_array(r->m->arena, (size_t)r->members_count, sizeof(*rows));
    r->m->b.device = r->devices[worker];
    for (int i = 0; i < r->members_count; i++)
        rows[i] = flat(r, r->grads[worker][r->members[i]]);
    return r->members_count == 1 ? rows[0] : build_concat(r->m, rows, r->members_count, 0);
}

static void scatter(struct reduce *r, int worker, struct edge row)
{
    struct build *m = r->m;
    int64_t *sizes = arena_array(m->arena, (size_t)r->members_count, sizeof(*sizes));
    r->m->b.device = r->devices[worker];
    for (int i = 0; i < r->members_count; i++)
        sizes[i] = numbers_of(r, r->members[i]);
    struct edge parts = cut(r, row, sizes, r->members_count);
    for (int i = 0; i < r->members_count && build_ok(m); i++) {
        const struct shape *shape = &m->weights[r->weights[r->members[i]]].face.shape;
        r->grads[worker][r->members[i]] =
            build_reshape(m, builder_output(parts, i), shape->dims, shape->rank);
    }
}

/* Each worker's row in as many pieces as there are workers: pieces[piece * workers + worker].
 * They begin on boundaries, so that nothing is copied to take them apart. */
static struct edge *cut_all(struct reduce *r, const struct edge *rows, int64_t numbers)
{
    int n = r->workers;
    int64_t *sizes = arena_array(r->m->arena, (size_t)n, sizeof(*sizes));
    struct edge *pieces = arena_array(r->m->arena, (size_t)n * (size_t)n, sizeof(*pieces));
    int64_t units = numbers / PIECE_UNIT;
    for (int i = 0; i < n; i++)
        sizes[i] = (units / n + (i < units % n)) * PIECE_UNIT;
    sizes[n - 1] += numbers % PIECE_UNIT;
    for (int w = 0; w < n; w++) {
        r->m->b.device = r->devices[w];
        struct edge parts = cut(r, rows[w], sizes, n);
        for (int i = 0; i < n && build_ok(r->m); i++)
            pieces[i * n + w] = builder_output(parts, i);
    }
    return pieces;
}

static void reduce_bucket(struct reduce *r)
{
    struct build *m = r->m;
    int n = r->workers;
    int64_t numbers = 0;
    struct edge *rows = arena_array(m->arena, (size_t)n, sizeof(*rows));
    struct edge *means = arena_array(m->arena, (size_t)n * (size_t)n, sizeof(*means));
    for (int i = 0; i < r->members_count; i++)
        numbers += numbers_of(r, r->members[i]);
    for (int w = 0; w < n; w++)
        rows[w] = gather(r, w);
    if (numbers * (int64_t)dtype_size(r->dtype) / n < PIECE_BYTES_MIN) {
        tree(r, rows, means);
        for (int w = 0; w < n; w++)
            scatter(r, w, means[w]);
        return;
    }
    const struct edge *pieces = cut_all(r, rows, numbers);
    for (int piece = 0; piece < n && build_ok(m); piece++)
        ring(r, &pieces[piece * n], piece, &means[piece * n]);
    for (int w = 0; w < n && build_ok(m); w++) {
        m->b.device = r->devices[w];
        for (int piece = 0; piece < n; piece++)
            rows[piece] = means[piece * n + w];
        scatter(r, w, build_concat(m, rows, n, 0));
    }
}

/* Those of the bucket are on their way; the next one is empty. */
static void end_bucket(struct reduce *r, int *number)
{
    struct build *m = r->m;
    if (r->members_count && build_ok(m)) {
        const char *outside = build_enter(m, arena_printf(m->arena, "bucket_%d", (*number)++));
        reduce_bucket(r);
        build_leave(m, outside);
    }
    r->members_count = 0;
}

/* The last layers' gradients come first: large ones each in a bucket, then the others. */
static void reduce_all(struct reduce *r, int count)
{
    int bucket = 0;
    int64_t bytes = 0;
    for (int i = count - 1; i >= 0; i--) {
        r->members[0] = i;
        r->members_count = numbers_of(r, i) * (int64_t)sizeof(float) >= ALONE_BYTES;
        end_bucket(r, &bucket);
    }
    for (int i = count - 1; i >= 0; i--) {
        int64_t more = numbers_of(r, i) * (int64_t)sizeof(float);
        if (more >= ALONE_BYTES)
            continue;
        if (bytes + more > BUCKET_BYTES) {
            end_bucket(r, &bucket);
            bytes = 0;
        }
        bytes += more;
        r->members[r->members_count++] = i;
    }
    end_bucket(r, &bucket);
}

void replica_reduce(struct building *g, struct edge *const *grads, int count)
{
    struct build *m = &g->m;
    int *weights = arena_array(m->arena, (size_t)count, sizeof(*weights));
    for (int i = 0, n = 0; n < count; i++) {
        if (m->weights[i].face.trainable)
            weights[n++] = i;
    }
    struct reduce r = {.m = m,
                       .devices = m->mirrors,
                       .workers = m->mirrors_count,
                       .dtype = (enum dtype)g->spec->strategy.compress,
                       .weights = weights,
                       .members = arena_array(m->arena, (size_t)count, sizeof(int)),
                       .grads = grads};
    reduce_all(&r, count);
    m->b.device = NULL;
}
