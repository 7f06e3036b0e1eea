/* tables.c - rows drawn from simple laws. */

#include "cli/tables.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"

#define TWO_PI 6.28318530717958647692
#define TEST_ROWS INT64_C(1000000000) /* number of the first row to test on */

/* --- random numbers: a counter through a mixer, so that any row can be drawn alone --- */

struct dice {
    uint64_t state;
};

static double roll(struct dice *dice)
{
    uint64_t x = dice->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

static int choose(struct dice *dice, int count)
{
    return (int)(roll(dice) * count);
}

/* Of the normal distribution. */
static double normal(struct dice *dice)
{
    double radius = sqrt(-2 * log(1 - roll(dice)));
    return radius * cos(TWO_PI * roll(dice));
}

/* --- files --- */

typedef void row_writer(FILE *file, struct dice *dice);

static bool write_part(const char *path, const char *header, row_writer *row, uint64_t seed,
                       int64_t first, int64_t count, struct error *err)
{
    FILE *file = fopen(path, "we");
    if (!file)
        return error_errno(err, DENIED, "cannot create %s", path);
    fprintf(file, "%s\n", header);
    for (int64_t i = first; i < first + count && !ferror(file); i++) {
        struct dice dice = {seed * UINT64_C(0xd6e8feb86659fd93) +
                            (uint64_t)i * UINT64_C(0xca5a826395121157)};
        roll(&dice);
        row(file, &dice);
    }
    bool ok = !ferror(file) && fflush(file) == 0 && fsync(fileno(file)) == 0;
    if (!ok)
        error_errno(err, errno == ENOSPC ? EXHAUSTED : UNKNOWN, "cannot write %s", path);
    if (fclose(file) != 0 && ok)
        ok = error_errno(err, EXHAUSTED, "cannot write %s", path);
    return ok;
}

static bool write_both(const char *folder, const char *header, row_writer *row,
                       int64_t train_count, int64_t test_count, uint64_t seed,
                       struct error *err)
{
    char *train = alloc_printf("%s/train.csv", folder);
    char *test = alloc_printf("%s/test.csv", folder);
    bool ok = write_part(train, header, row, seed, 0, train_count, err) &&
              write_part(test, header, row, seed, TEST_ROWS, test_count, err);
    free(train);
    free(test);
    return ok;
}

/* --- a weighted sum --- */

static void linear_row(FILE *file, struct dice *dice)
{
    static const double weights[] = {3, -2, 0.5, 0, 1, -1, 0.25, 2, 0, -0.75};
    double y = 1.5;
    for (int i = 0; i < ARRAY_LEN(weights); i++) {
        double x = round(normal(dice) * 10000) / 10000;
        y += weights[i] * x;
        fprintf(file, "%.4f,", x);
    }
    fprintf(file, "%.4f\n", y + 0.1 * normal(dice));
}

bool tables_linear(const char *folder, int64_t train_count, int64_t test_count, uint64_t seed,
                   struct error *err)
{
    return write_both(folder, "x0,x1,x2,x3,x4,x5,x6,x7,x8,x9,y", linear_row, train_count,
                      test_count, seed, err);
}

/* --- people --- */

static void census_row(FILE *file, struct dice *dice)
{
    static const char *const jobs[] = {"clerk",  "driver", "engineer",
                                       "farmer", "nurse",  "smith"};
    static const char *const regions[] = {"coast", "hills", "north", "plains", "south"};
    /* What a job earns more in a region than elsewhere: rows and columns sum to nothing. */
    static const double pairs[6][5] = {{2, -1, 1, -2, 0}, {-2, 2, -1, 1, 0}, {1, -2, 2, -1, 0},
                                       {-1, 1, -2, 2, 0}, {0, 0, -1, -1, 2}, {0, 0, 1, 1, -2}};
    int age = 18 + choose(dice, 60), hours = 20 + choose(dice, 41);
    int schooling = 8 + choose(dice, 11), job = choose(dice, 6), region = choose(dice, 5);
    double score = 0.05 * (age - 47) + 0.06 * (hours - 40) + 0.25 * (schooling - 13) +
                   1.5 * pairs[job][region] + 0.4 * (job - 2.5);
    int label = roll(dice) < 1 / (1 + exp(-1.5 * score));
    fprintf(file, "%d,%d,%d,%s,%s,%s-%s,%d\n", age, hours, schooling, jobs[job],
            regions[region], jobs[job], regions[region], label);
}

bool tables_census(const char *folder, int64_t train_count, int64_t test_count, uint64_t seed,
                   struct error *err)
{
    return write_both(folder, "age,hours,schooling,job,region,job_region,label", census_row,
                      train_count, test_count, seed, err);
}

/* --- points around centres --- */

static void blobs_row(FILE *file, struct dice *dice)
{
    static const double centres[5][2] = {{-2, -2}, {-2, 2}, {2, -2}, {2, 2}, {0, 0}};
    int blob = choose(dice, 5);
    double x = centres[blob][0] + 0.3 * normal(dice);
    double y = centres[blob][1] + 0.3 * normal(dice);
    fprintf(file, "%.4f,%.4f,%d\n", x, y, blob);
}

bool tables_blobs(const char *folder, int64_t train_count, int64_t test_count, uint64_t seed,
                  struct error *err)
{
    return write_both(folder, "x1,x2,blob", blobs_row, train_count, test_count, seed, err);
}
