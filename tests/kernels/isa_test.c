/*
 * isa_test.c - the inner loops of each instruction set that this machine has, against those of
 * the baseline; matrix products and sums against plain loops in double.
 */
#include "kernels/cpu/isa.h"

#include <math.h>

#include "kernels/cpu/gemm.h"
#include "tests/unit/test.h"

enum { SIZE = 4096 };

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
    if (isa() == &isa_avx512)
        list[count++] = &isa_avx512;
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
    const struct isa *list[3];
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
    const struct isa *list[3];
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
    }
}

TEST(logarithm_is_that_of_the_library)
{
    const struct isa *list[3];
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
    const struct isa *list[3];
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
    const struct isa *list[3];
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

static void check_gemm(struct gemm g, const float *start, int threads)
{
    static float wanted[SIZE], is[SIZE];
    for (int64_t i = 0; i < g.m; i++) {
        for (int64_t j = 0; j < g.n; j++) {
            double y = 0;
            for (int64_t p = 0; p < g.k; p++)
                y += (double)g.a[i * g.a_row + p * g.a_column] *
                     (double)g.b[p * g.b_row + j * g.b_column];
            y = (double)g.alpha * y + (double)g.beta * (double)start[i * g.c_row + j];
            y += g.bias ? (double)g.bias[j] : 0;
            wanted[i * g.n + j] = (float)(g.relu && y < 0 ? 0 : y);
        }
    }
    memcpy(is, start, sizeof(is));
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
}

TEST(products_with_all_ends)
{
    for (int round = 0; round < 400; round++) {
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
                         .relu = next_number() & 1};
        if (m * g.c_row <= SIZE)
            check_gemm(g, c, 1 + (int)(next_number() % 3));
    }
}
