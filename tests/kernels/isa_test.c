/*
 * isa_test.c - the inner loops of each instruction set that this machine has, against those of
 * the baseline; matrix products and sums against plain loops in double.
 */
#include "kernels/cpu/isa.h"

#include <math.h>

#include "kernels/cpu/gemm.h"
#include "tests/unit/test.h"

enum { SIZE = 4096, ISAS = 4 };

static float a[SIZE], b[SIZE], c[SIZE];

static uint32_t next_number(void)
{
    static uint64_t seed = 7;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33);
}

static void fill(float *x)
{
    for (int i = 0; i < SIZE; i++)
        x[i] = (float)next_number() / (float)(1u << 30) - 1;
}

/* Those to be tested; the first is the baseline. */
static int all_isas(const struct isa **list)
{
    int count = 0;
    list[count++] = &isa_base;
#ifdef __x86_64__
    if (isa() != &isa_base)
        list[count++] = &isa_avx2; /* a machine with AVX-512 has it too */
    if (!strncmp(isa()->name, "avx512", 6))
        list[count++] = &isa_avx512;
    if (list[count - 1] != isa() && isa() != &isa_base)
        list[count++] = isa(); /* with instructions for bfloat16 */
#endif
    return count;
}

static void check_close(const char *what, const float *is, const float *wanted, int64_t count,
                        double tolerance)
{
    for (int64_t i = 0; i < count; i++) {
        double difference = fabs((double)is[i] - (double)wanted[i]);
        if (is[i] == wanted[i] || (isnan(is[i]) && isnan(wanted[i])) ||
            difference <= tolerance * fmax(1, fabs((double)wanted[i])))
            continue;
        CHECK_STOP("%s: element %lld is %.9g, not %.9g", what, (long long)i, (double)is[i],
                   (double)wanted[i]);
    }
}

TEST(elementwise_is_the_same_everywhere)
{
    const struct isa *list[ISAS];
    int count = all_isas(list);
    for (int n = 0; n <= 67; n++) {
        fill(a);
        fill(b);
        for (int k = 1; k < count; k++) {
            for (int op = 0; op < ISA_BINARIES; op++) {
                float is[80], wanted[80];
                bool scalar = next_number() & 1;
                isa_base.binary((enum isa_binary)op, n, a, scalar, b, false, wanted);
                is[n] = 123;
                list[k]->binary((enum isa_binary)op, n, a, scalar, b, false, is);
                check_close(list[k]->name, is, wanted, n, 1e-6);
                CHECK(is[n] == 123); /* nothing behind the end is touched */
            }
            for (int op = 0; op < ISA_UNARIES; op++) {
                float is[80], wanted[80];
                isa_base.unary((enum isa_unary)op, n, a, wanted);
                is[n] = 123;
                list[k]->unary((enum isa_unary)op, n, a, is);
                check_close(list[k]->name, is, wanted, n, 1e-6);
                CHECK(is[n] == 123);
            }
        }
    }
}

TEST(exponential_is_that_of_the_library)
{
    const struct isa *list[ISAS];
    int count = all_isas(list);
    for (int k = 0; k < count; k++) {
        for (float x = -110; x < 92; x += 0.0137f) {
            float y;
            list[k]->unary(ISA_EXP, 1, &x, &y);
            double wanted = exp((double)x);
            if (wanted > 3.4028235e38)
                CHECK(isinf(y));
            else if (fabs((double)y - wanted) > 4e-7 * wanted + 3e-45)
                CHECK_STOP("%s: exp(%.9g) is %.9g, not %.9g", list[k]->name, (double)x,
                           (double)y, wanted);
        }
        const float ends[] = {0, -0.0f, -INFINITY, INFINITY, NAN, -1e30f, 1e30f, -104.5f};
        const float wanted[] = {1, 1, 0, INFINITY, NAN, 0, INFINITY, 0};
        float is[ARRAY_LEN(ends)];
        list[k]->unary(ISA_EXP, ARRAY_LEN(ends), ends, is);
        check_close(list[k]->name, is, wanted, ARRAY_LEN(ends), 0);
    }
}

/* NaN if either is, and the first of two zeros: on all of them. */
TEST(larger_and_smaller_keep_nan)
{
    const struct isa *list[ISAS];
    const float x[] = {NAN, 1, NAN, 0, -0.0f, 2, -INFINITY, INFINITY};
    const float y[] = {1, NAN, NAN, -0.0f, 0, 3, 4, NAN};
    const float most[] = {NAN, NAN, NAN, 0, -0.0f, 3, 4, NAN};
    const float least[] = {NAN, NAN, NAN, 0, -0.0f, 2, -INFINITY, NAN};
    int count = all_isas(list);
    for (int k = 0; k < count; k++) {
        float is[ARRAY_LEN(x)];
        list[k]->binary(ISA_MAXIMUM, ARRAY_LEN(x), x, false, y, false, is);
        check_close(list[k]->name, is, most, ARRAY_LEN(x), 0);
        CHECK(!signbit(is[3]) && signbit(is[4]));
        list[k]->binary(ISA_MINIMUM, ARRAY_LEN(x), x, false, y, false, is);
        check_close(list[k]->name, is, least, ARRAY_LEN(x), 0);
        CHECK(!signbit(is[3]) && signbit(is[4]));
    }
}

static void check_attention_row(const struct isa *ops, int64_t count, int64_t columns)
{
    float w[160], g[160], wanted[160], scale = 0.25f;
    double most = -INFINITY, total = 0, mean = 0;
    for (int64_t j = 0; j < count; j++)
        most = fmax(most, (double)(a[j] * scale));
    for (int64_t j = 0; j < count; j++)
        total += exp((double)(a[j] * scale) - most);
    memcpy(w, a, sizeof(w));
    memcpy(g, b, sizeof(g));
    w[columns] = g[columns] = 123;
    for (int64_t j = 0; j < columns; j++)
        wanted[j] = j < count ? (float)(exp((double)(a[j] * scale) - most) / total) : 0;
    ops->attention_weights(count, columns, scale, w);
    check_close(ops->name, w, wanted, columns, 1e-6);
    for (int64_t j = 0; j < count; j++)
        mean += (double)(w[j] * b[j]);
    for (int64_t j = 0; j < columns; j++)
        wanted[j] = j < count ? (float)(((double)b[j] - mean) * (double)(w[j] * scale)) : 0;
    ops->attention_weights_grad(count, columns, scale, w, g);
    check_close(ops->name, g, wanted, columns, 1e-6);
    CHECK(w[columns] == 123);
    CHECK(g[columns] == 123);
}

/* Rows that fit the registers, and longer ones; behind what is seen all is 0, even of a NaN. */
TEST(attention_rows_of_all_lengths)
{
    const struct isa *list[ISAS];
    int isas = all_isas(list);
    fill(a);
    fill(b);
    for (int k = 0; k < isas; k++)
        for (int64_t columns = 1; columns <= 150; columns++)
            for (int64_t count = 1; count <= columns; count += 1 + columns / 40)
                check_attention_row(list[k], count, columns);
    for (int k = 0; k < isas; k++) {
        for (int64_t columns = 20; columns < 150; columns += 29) {
            float w[160], g[160];
            memcpy(w, a, sizeof(w));
            memcpy(g, b, sizeof(g));
            w[2] = NAN;
            list[k]->attention_weights(7, columns, 1, w);
            list[k]->attention_weights_grad(7, columns, 1, w, g);
            for (int64_t j = 0; j < columns; j++)
                CHECK(j < 7 ? isnan(w[j]) && isnan(g[j]) : w[j] == 0 && g[j] == 0);
        }
    }
}

TEST(logarithm_is_that_of_the_library)
{
    const struct isa *list[ISAS];
    const float ends[] = {0, -0.0f, -1, INFINITY, -INFINITY, NAN, 1, 1e-40f, 3.4e38f};
    int count = all_isas(list);
    for (int k = 0; k < count; k++) {
        float y, x = 1.2e-38f;
        for (int i = 0; i < ARRAY_LEN(ends); i++) {
            float wanted = logf(ends[i]);
            list[k]->unary(ISA_LOG, 1, &ends[i], &y);
            check_close(list[k]->name, &y, &wanted, 1, 1e-7);
        }
        for (; x < 1e38f; x *= 1.0037f) {
            list[k]->unary(ISA_LOG, 1, &x, &y);
            double wanted = log((double)x);
            if (fabs((double)y - wanted) > 1.2e-7 * fabs(wanted) + 1e-9)
                CHECK_STOP("%s: log(%.9g) is %.9g, not %.9g", list[k]->name, (double)x,
                           (double)y, wanted);
        }
    }
}

TEST(updates_and_sums_are_the_same_everywhere)
{
    const struct isa *list[ISAS];
    int count = all_isas(list);
    const struct isa_adam rule = {
        .alpha = 1e-2f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f};
    for (int k = 1; k < count; k++) {
        for (int n = 1; n < 300; n += 13) {
            float m[2][300] = {{0}}, v[2][300] = {{0}}, w[2][300] = {{0}};
            const struct isa *both[] = {&isa_base, list[k]};
            fill(a);
            for (int i = 0; i < 2; i++) {
                both[i]->adam(n, &rule, a, m[i], v[i], w[i]);
                both[i]->momentum(n, 0.1f, 0.9f, n & 1, a, m[i], w[i]);
                both[i]->keras_momentum(n, 0.1f, 0.9f, n & 1, a, m[i], w[i]);
                both[i]->scale_add(n, 0.5f, a, w[i]);
            }
            check_close("updates", w[1], w[0], n, 1e-5);
            float sums[] = {isa_base.sum(n, a), list[k]->sum(n, a)};
            check_close("sum", sums + 1, sums, 1, 1e-5);
            CHECK(isa_base.maximum(n, a) == list[k]->maximum(n, a));
        }
    }
}

TEST(random_bits_are_the_same_everywhere)
{
    const struct isa *list[ISAS];
    int count = all_isas(list);
    for (int n = 0; n < 40; n++) {
        uint32_t wanted[160], is[161];
        isa_base.philox(0x123456789abcdefu, 5, UINT64_MAX - 7, n, wanted);
        for (int k = 1; k < count; k++) {
            is[4 * n] = 77;
            list[k]->philox(0x123456789abcdefu, 5, UINT64_MAX - 7, n, is);
            CHECK(!memcmp(is, wanted, (size_t)n * 16));
            CHECK_INT(is[4 * n], 77);
        }
    }
}

/* The known answer of Philox 4x32-10 for counter and key 0. */
TEST(philox_gives_its_known_answer)
{
    uint32_t out[4];
    isa()->philox(0, 0, 0, 1, out);
    CHECK_INT(out[0], 0x6627e8d5);
    CHECK_INT(out[1], 0xe169c58d);
    CHECK_INT(out[2], 0xbc57ac4c);
    CHECK_INT(out[3], 0x9b00dbd8);
}

/* --- products with their ends --- */

/* A factor as the product takes it. */
static double factor(const struct gemm *g, float x)
{
    if (g->bf16)
        isa_base.bf16.round(1, &x, &x);
    return (double)x;
}

static void check_gemm(struct gemm g, const float *start, int threads)
{
    size_t size = (size_t)(g.m * g.c_row), bytes = size * sizeof(float);
    float *wanted = malloc(bytes), *is = malloc(bytes);
    for (int64_t i = 0; i < g.m; i++) {
        for (int64_t j = 0; j < g.n; j++) {
            double y = 0;
            for (int64_t p = 0; p < g.k; p++)
                y += factor(&g, g.a[i * g.a_row + p * g.a_column]) *
                     factor(&g, g.b[p * g.b_row + j * g.b_column]);
            y = (double)g.alpha * y + (double)g.beta * (double)start[i * g.c_row + j];
            y += g.bias ? (double)g.bias[j] : 0;
            wanted[i * g.n + j] = (float)(g.relu && y < 0 ? 0 : y);
        }
    }
    memcpy(is, start, bytes);
    g.c = is;
    void *scratch = malloc(gemm_scratch(&g, threads) + 64);
    gemm_run(&g, threads, (void *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63));
    free(scratch);
    for (int64_t i = 0; i < g.m; i++) {
        check_close("gemm", is + i * g.c_row, wanted + i * g.n, g.n, 1e-5);
        if (i + 1 < g.m)
            CHECK(!memcmp(is + i * g.c_row + g.n, start + i * g.c_row + g.n,
                          (size_t)(g.c_row - g.n) * sizeof(float)));
    }
    free(wanted);
    free(is);
}

TEST(products_with_all_ends)
{
    for (int round = 0; round < 800; round++) {
        fill(a);
        fill(b);
        fill(c);
        bool ta = next_number() & 1, tb = next_number() & 1;
        int64_t m = 1 + next_number() % 70, n = 1 + next_number() % 40, k = next_number() % 50;
        if (round % 4 == 0) {
            m = 64 + next_number() % 20;
            n = 1 + next_number() % 16;
        }
        struct gemm g = {.m = m,
                         .n = n,
                         .k = k,
                         .a = a,
                         .a_row = ta ? 1 : k,
                         .a_column = ta ? m : 1,
                         .b = b,
                         .b_row = tb ? 1 : n,
                         .b_column = tb ? k : 1,
                         .c_row = n + (next_number() & 1 ? 0 : next_number() % 5),
                         .alpha = next_number() & 1 ? 1 : -0.25f,
                         .beta = next_number() & 1   ? 0
                                 : next_number() & 1 ? 1
                                                     : 0.5f,
                         .bias = next_number() & 1 ? c : NULL,
                         .relu = next_number() & 1,
                         .bf16 = round & 1};
        if (m * g.c_row <= SIZE)
            check_gemm(g, c, 1 + (int)(next_number() % 3));
    }
}

/* --- Winograd's convolution: one patch --- */

enum { IN = 16, OUT = 48, POINTS = 36, TAPS_MAX = 5, ROOM = ISA_TILE_ROWS_MAX };

static float image[POINTS * IN], filter[TAPS_MAX * TAPS_MAX * IN * OUT], patch[16 * OUT];
static float x_points[POINTS * ROOM * IN], y_points[POINTS * ROOM * OUT];
static float filter_points[POINTS * IN * OUT];

static void fill_some(float *to, int count)
{
    for (int i = 0; i < count; i++)
        to[i] = (float)next_number() / (float)(1u << 30) - 1;
}

static void move_patch(const struct isa *k, int n, float *space, int channels, float *points,
                       bool there)
{
    float *at[POINTS];
    for (int i = 0; i < n * n; i++)
        at[i] = space + i * channels;
    const struct isa_winograd w = {.channels = channels,
                                   .space = at,
                                   .later = at,
                                   .points = points,
                                   .stride = ROOM * channels,
                                   .advance = (int64_t)ROOM * k->lanes};
    (there ? k->winograd_spread : k->winograd_gather)(n, &w);
}

/* Filters in space to the points or back, input channel by input channel. */
static void move_filter(const struct isa *k, int taps, float *space, bool there)
{
    for (int in = 0; in < IN; in++) {
        float *at[POINTS];
        for (int i = 0; i < taps * taps; i++)
            at[i] = space + (i * IN + in) * OUT;
        const struct isa_winograd w = {.channels = OUT,
                                       .space = at,
                                       .later = at,
                                       .points = filter_points + in * OUT,
                                       .stride = IN * OUT,
                                       .advance = k->lanes};
        (there ? k->winograd_spread : k->winograd_gather)(taps, &w);
    }
}

static void each_point(void (*function)(const struct isa_winograd_product *p))
{
    for (int i = 0; i < POINTS; i++) {
        const struct isa_winograd_product p = {.patches = 1,
                                               .room = ROOM,
                                               .in = IN,
                                               .out = OUT,
                                               .x = x_points + i * ROOM * IN,
                                               .y = y_points + i * ROOM * OUT,
                                               .filter = filter_points + i * IN * OUT,
                                               .sums = filter_points + i * IN * OUT};
        function(&p);
    }
}

static void check_number(const struct isa *k, const char *what, double is, double wanted)
{
    if (fabs(is - wanted) > 1e-4)
        CHECK_STOP("%s: %s is %.9g, not %.9g", k->name, what, is, wanted);
}

static void check_patch(const struct isa *k, int taps)
{
    int n = 7 - taps;
    move_patch(k, 6, image, IN, x_points, true);
    move_filter(k, taps, filter, true);
    each_point(k->winograd_product);
    move_patch(k, n, patch, OUT, y_points, false);
    for (int i = 0; i < n * n * OUT; i++) {
        int o = i % OUT, column = i / OUT % n, row = i / OUT / n;
        double wanted = 0;
        for (int t = 0; t < taps * taps * IN; t++) {
            int in = t % IN, y = row + t / IN / taps, x = column + t / IN % taps;
            wanted += (double)image[(y * 6 + x) * IN + in] * (double)filter[t * OUT + o];
        }
        check_number(k, "a place", (double)patch[i], wanted);
    }
}

static void check_patch_grad(const struct isa *k, int taps)
{
    int n = 7 - taps;
    move_patch(k, 6, image, IN, x_points, true);
    move_patch(k, n, patch, OUT, y_points, true);
    each_point(k->winograd_sums);
    move_filter(k, taps, filter, false);
    for (int t = 0; t < taps * taps * IN; t++)
        for (int o = 0; o < OUT; o++) {
            double wanted = 0;
            for (int i = 0; i < n * n; i++) {
                int in = t % IN, y = i / n + t / IN / taps, x = i % n + t / IN % taps;
                wanted += (double)image[(y * 6 + x) * IN + in] * (double)patch[i * OUT + o];
            }
            check_number(k, "a tap's gradient", (double)filter[t * OUT + o], wanted);
        }
}

TEST(patches_at_the_points_and_back)
{
    const struct isa *list[ISAS];
    int count = all_isas(list);
    for (int k = 0; k < count; k++)
        for (int taps = 3; taps <= 5; taps += 2) {
            fill_some(image, ARRAY_LEN(image));
            fill_some(filter, ARRAY_LEN(filter));
            check_patch(list[k], taps);
            fill_some(patch, ARRAY_LEN(patch));
            check_patch_grad(list[k], taps);
        }
}

/* --- large products --- */

/* `count` numbers below 1/8, so that long sums stay small; to be freed. */
static float *numbers(int64_t count)
{
    float *x = malloc((size_t)count * sizeof(float));
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)next_number() / (float)(1u << 30) / 8 - 0.125f;
    return x;
}

/* Several blocks of rows and of depth, several groups of panels; rows crowded in a cache. */
TEST(products_of_many_blocks)
{
    static const struct {
        int64_t m, n, k;
    } sizes[] = {{450, 70, 200},
                 {13, 600, 512},
                 {101, 130, 1024},
                 {820, 65, 97},
                 {25, 1040, 321},
                 {64, 33, 2048},
                 {12, 1100, 1024},
                 {300, 100, 1},
                 {270, 530, 40},
                 /* one factor, or the result, goes through the caches once */
                 {5, 4100, 70},
                 {24, 1050, 300},
                 {1, 5000, 64},
                 {300, 1037, 33},
                 {500, 1100, 7},
                 {260, 1025, 64},
                 {8, 1400, 199},
                 {3, 4099, 67},
                 {16, 700, 401}};
    for (int i = 0; i < 4 * ARRAY_LEN(sizes); i++) {
        bool ta = i & 1, tb = i & 2;
        int64_t m = sizes[i / 4].m, n = sizes[i / 4].n, k = sizes[i / 4].k;
        float *x = numbers(m * k), *y = numbers(k * n), *start = numbers(m * n);
        const struct gemm g = {.m = m,
                               .n = n,
                               .k = k,
                               .a = x,
                               .a_row = ta ? 1 : k,
                               .a_column = ta ? m : 1,
                               .b = y,
                               .b_row = tb ? 1 : n,
                               .b_column = tb ? k : 1,
                               .c_row = n,
                               .alpha = i % 3 ? 1 : -0.01f,
                               .beta = i % 5 ? 0 : 1,
                               .bias = i % 7 ? NULL : start,
                               .relu = i % 7 == 1};
        for (int threads = 1; threads <= 3; threads++)
            check_gemm(g, start, threads);
        free(x);
        free(y);
        free(start);
    }
}

/* B of more than 1 MiB, so that each block of rows packs it group by group. */
TEST(products_with_a_large_factor)
{
    enum { M = 265, N = 520, K = 520 };
    float *x = numbers(M * K), *y = numbers(K * N), *start = numbers(M * N);
    const struct gemm g = {.m = M,
                           .n = N,
                           .k = K,
                           .a = x,
                           .a_row = 1,
                           .a_column = M,
                           .b = y,
                           .b_row = N,
                           .b_column = 1,
                           .c_row = N,
                           .alpha = 1,
                           .beta = 1};
    check_gemm(g, start, 1);
    free(x);
    free(y);
    free(start);
}

TEST(rows_packed_in_tiles)
{
    const struct isa *list[ISAS];
    int count = all_isas(list);
    fill(a);
    for (int k = 0; k < count; k++) {
        for (int64_t rows = 1; rows < 500; rows += rows < 60 ? 1 : 71) {
            int64_t tiles = (rows + list[k]->tile_rows - 1) / list[k]->tile_rows, at = 0;
            float is[500 * 7 + 1];
            is[rows * 7] = 123;
            list[k]->pack_tiles(is, 7, rows, tiles, a, 512);
            for (int64_t t = 0; t < tiles; t++)
                for (int64_t p = 0; p < 7; p++)
                    for (int64_t i = rows * t / tiles; i < rows * (t + 1) / tiles; i++)
                        CHECK(is[at++] == a[p * 512 + i]);
            CHECK(is[rows * 7] == 123);
        }
    }
}

/* --- bfloat16 --- */

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static uint32_t to_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

TEST(rounding_to_bfloat16_goes_to_the_nearest_and_to_even)
{
    static const uint32_t cases[][2] = {
        {0x3f800000, 0x3f800000}, {0x3f807fff, 0x3f800000}, {0x3f808000, 0x3f800000},
        {0x3f808001, 0x3f810000}, {0x3f818000, 0x3f820000}, {0xbf818000, 0xbf820000},
        {0x7f7fffff, 0x7f800000}, {0x7f800000, 0x7f800000}, {0xff800000, 0xff800000},
        {0x80000000, 0x80000000}, {0x00800000, 0x00800000}, {0x7fc00001, 0x7fc00000}};
    const struct isa *list[ISAS];
    int count = all_isas(list);
    for (int k = 0; k < count; k++) {
        for (int i = 0; i < ARRAY_LEN(cases); i++) {
            float x = from_bits(cases[i][0]), y, pairs[2];
            list[k]->bf16.round(1, &x, &y);
            CHECK_INT(to_bits(y), cases[i][1]);
            list[k]->bf16.pair_columns(1, 1, &x, 1, pairs, 1);
            CHECK_INT(to_bits(pairs[0]), cases[i][1] >> 16);
            list[k]->bf16.pair_rows(2, 1, (float[]){1, x}, 1, pairs, 1);
            CHECK_INT(to_bits(pairs[0]), cases[i][1] | 0x3f80);
        }
    }
}

/* Pairs of a matrix both ways: the bits of its rounded elements, and nothing beside them. */
TEST(pairs_are_the_same_everywhere)
{
    const struct isa *list[ISAS];
    int count = all_isas(list);
    for (int n = 1; n < 300; n++) {
        int64_t rows = 1 + n % 7, columns = 1 + n % 53, half = (columns + 1) / 2;
        int64_t rows_half = (rows + 1) / 2;
        fill(a);
        for (int k = 0; k < count; k++) {
            list[k]->bf16.round(SIZE, a, b);
            memset(c, 0x55, sizeof(c));
            list[k]->bf16.pair_columns(rows, columns, a, 60, c, half + 1);
            for (int64_t i = 0; i < rows; i++) {
                for (int64_t p = 0; p < half; p++) {
                    uint32_t high = 2 * p + 1 < columns ? to_bits(b[i * 60 + 2 * p + 1]) : 0;
                    CHECK_INT(to_bits(c[i * (half + 1) + p]),
                              high | to_bits(b[i * 60 + 2 * p]) >> 16);
                }
                CHECK_INT(to_bits(c[i * (half + 1) + half]), 0x55555555);
            }
            memset(c, 0x55, sizeof(c));
            list[k]->bf16.pair_rows(rows, columns, a, 60, c, columns + 1);
            for (int64_t p = 0; p < rows_half; p++) {
                for (int64_t j = 0; j < columns; j++) {
                    uint32_t high = 2 * p + 1 < rows ? to_bits(b[(2 * p + 1) * 60 + j]) : 0;
                    CHECK_INT(to_bits(c[p * (columns + 1) + j]),
                              high | to_bits(b[2 * p * 60 + j]) >> 16);
                }
                CHECK_INT(to_bits(c[p * (columns + 1) + columns]), 0x55555555);
            }
        }
    }
}

TEST(tiles_of_pairs_are_the_same_everywhere)
{
    const struct isa *list[ISAS];
    int count = all_isas(list);
    for (int round = 0; round < 200; round++) {
        int k = 1 + (int)(next_number() % 40), row = (k + 1) / 2;
        fill(a);
        fill(b);
        for (int i = 0; i < count; i++) {
            static float left[SIZE], right[SIZE];
            float is[ISA_TILE_ROWS_MAX * ISA_TILE_COLUMNS_MAX];
            int width = list[i]->tile_columns;
            struct isa_tile tile = {.rows = 1 + (int)next_number() % list[i]->tile_rows,
                                    .columns = 1 + (int)next_number() % width,
                                    .k = row,
                                    .a = left,
                                    .a_row = row,
                                    .a_column = 1,
                                    .b = right,
                                    .b_row = width,
                                    .c = is,
                                    .c_row = width,
                                    .alpha = 1};
            list[i]->bf16.pair_columns(tile.rows, k, a, k, left, row);
            list[i]->bf16.pair_rows(k, width, b, width, right, width);
            list[i]->bf16.tile(&tile);
            for (int64_t r = 0; r < tile.rows; r++)
                for (int64_t j = 0; j < tile.columns; j++) {
                    const struct gemm rounded = {.bf16 = true};
                    double y = 0;
                    for (int p = 0; p < k; p++)
                        y +=
                            factor(&rounded, a[r * k + p]) * factor(&rounded, b[p * width + j]);
                    float wanted = (float)y;
                    check_close(list[i]->name, is + r * width + j, &wanted, 1, 1e-5);
                }
        }
    }
}
