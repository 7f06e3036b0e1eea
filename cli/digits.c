/* digits.c - strokes, distortions, ink. */

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "cli/digits.h"

#define POINTS_MAX 9 /* of a stroke */
#define STROKES_MAX 3
#define CURVE_STEPS 6 /* straight pieces between two points */
#define TWO_PI 6.28318530717958647692

struct point {
    double x, y; /* 0..1, y downwards */
};

struct stroke {
    int points_count;
    struct point points[POINTS_MAX];
};

struct figure {
    int digit;
    struct stroke strokes[STROKES_MAX];
};

/* Ways in which people write; smooth curves go through the points. */
/* clang-format off */
static const struct figure figures[] = {
    {0, {{9, {{.5, .05}, {.25, .2}, {.18, .5}, {.25, .8}, {.5, .95}, {.75, .8}, {.82, .5}, {.75, .2}, {.5, .05}}}}},
    {0, {{9, {{.6, .07}, {.3, .15}, {.2, .55}, {.35, .9}, {.6, .92}, {.8, .7}, {.8, .35}, {.7, .1}, {.45, .1}}}}},
    {1, {{2, {{.5, .05}, {.5, .95}}}}},
    {1, {{3, {{.3, .28}, {.4, .2}, {.55, .05}}}, {2, {{.55, .05}, {.52, .95}}}}},
    {1, {{2, {{.32, .25}, {.52, .05}}}, {2, {{.52, .05}, {.52, .95}}}, {2, {{.3, .95}, {.74, .95}}}}},
    {2, {{6, {{.22, .25}, {.4, .06}, {.7, .12}, {.75, .35}, {.5, .65}, {.2, .93}}}, {2, {{.2, .93}, {.82, .93}}}}},
    {2, {{9, {{.25, .2}, {.5, .05}, {.75, .25}, {.55, .6}, {.28, .9}, {.2, .8}, {.35, .75}, {.6, .92}, {.85, .85}}}}},
    {3, {{9, {{.22, .15}, {.5, .05}, {.75, .2}, {.65, .42}, {.42, .48}, {.72, .58}, {.78, .8}, {.5, .95}, {.2, .85}}}}},
    {3, {{2, {{.25, .07}, {.75, .07}}}, {2, {{.75, .07}, {.45, .4}}}, {6, {{.45, .4}, {.72, .48}, {.78, .7}, {.62, .9}, {.4, .95}, {.2, .85}}}}},
    {4, {{3, {{.6, .05}, {.4, .35}, {.15, .65}}}, {2, {{.15, .65}, {.88, .65}}}, {2, {{.65, .35}, {.65, .95}}}}},
    {4, {{3, {{.25, .05}, {.22, .3}, {.25, .5}}}, {3, {{.25, .5}, {.5, .52}, {.75, .48}}}, {2, {{.75, .05}, {.72, .95}}}}},
    {5, {{2, {{.75, .06}, {.3, .06}}}, {2, {{.3, .06}, {.26, .42}}}, {7, {{.26, .42}, {.5, .36}, {.75, .5}, {.78, .7}, {.65, .9}, {.42, .95}, {.2, .85}}}}},
    {5, {{2, {{.8, .1}, {.4, .05}}}, {8, {{.4, .05}, {.28, .25}, {.3, .42}, {.55, .42}, {.72, .55}, {.7, .78}, {.5, .93}, {.22, .9}}}}},
    {6, {{9, {{.68, .05}, {.4, .25}, {.24, .55}, {.28, .85}, {.52, .95}, {.75, .8}, {.7, .58}, {.48, .52}, {.26, .68}}}}},
    {6, {{9, {{.45, .05}, {.3, .3}, {.25, .6}, {.35, .9}, {.6, .93}, {.72, .75}, {.6, .58}, {.4, .6}, {.27, .75}}}}},
    {7, {{2, {{.18, .07}, {.82, .07}}}, {3, {{.82, .07}, {.58, .45}, {.42, .95}}}}},
    {7, {{2, {{.2, .1}, {.8, .06}}}, {3, {{.8, .06}, {.6, .5}, {.5, .95}}}, {2, {{.35, .5}, {.78, .48}}}}},
    {8, {{9, {{.72, .15}, {.5, .05}, {.28, .2}, {.45, .42}, {.72, .62}, {.7, .88}, {.45, .95}, {.25, .8}, {.35, .58}}}, {3, {{.35, .58}, {.65, .35}, {.72, .15}}}}},
    {8, {{7, {{.5, .05}, {.3, .14}, {.32, .38}, {.52, .46}, {.7, .36}, {.7, .14}, {.5, .05}}}, {7, {{.52, .46}, {.25, .6}, {.27, .87}, {.5, .95}, {.75, .85}, {.76, .6}, {.52, .46}}}}},
    {9, {{8, {{.75, .3}, {.6, .08}, {.35, .1}, {.25, .3}, {.38, .5}, {.6, .48}, {.74, .32}, {.76, .15}}}, {3, {{.75, .25}, {.72, .6}, {.62, .95}}}}},
    {9, {{7, {{.72, .25}, {.52, .06}, {.3, .18}, {.3, .42}, {.52, .5}, {.7, .38}, {.73, .2}}}, {5, {{.73, .2}, {.78, .55}, {.68, .85}, {.45, .95}, {.25, .85}}}}},
};
/* clang-format on */

/* --- random numbers: a counter through a mixer, so that any picture can be drawn alone --- */

struct dice {
    uint64_t state;
};

static uint64_t roll(struct dice *dice)
{
    uint64_t z = dice->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static double between(struct dice *dice, double low, double high)
{
    return low + (high - low) * (double)(roll(dice) >> 11) * 0x1p-53;
}

static double normal(struct dice *dice)
{
    double radius = sqrt(-2 * log(between(dice, 1e-12, 1)));
    return radius * cos(TWO_PI * between(dice, 0, 1));
}

/* --- bending --- */

#define WAVES 3

struct bend {
    double matrix[4];
    double shift_x, shift_y;
    struct {
        double amount_x, amount_y, turn_x, turn_y, phase_x, phase_y;
    } waves[WAVES]; /* a smooth field of displacements */
};

static struct bend bend_roll(struct dice *dice)
{
    struct bend bend;
    double angle = between(dice, -.35, .35), slant = between(dice, -.35, .35);
    double wide = between(dice, .6, 1.05), high = between(dice, .7, 1.05);
    double c = cos(angle), s = sin(angle);
    bend.matrix[0] = c * wide;
    bend.matrix[1] = (c * slant - s) * high;
    bend.matrix[2] = s * wide;
    bend.matrix[3] = (s * slant + c) * high;
    bend.shift_x = between(dice, -.12, .12);
    bend.shift_y = between(dice, -.1, .1);
    for (int i = 0; i < WAVES; i++) {
        bend.waves[i].amount_x = between(dice, -.03, .03);
        bend.waves[i].amount_y = between(dice, -.03, .03);
        bend.waves[i].turn_x = between(dice, -9, 9);
        bend.waves[i].turn_y = between(dice, -9, 9);
        bend.waves[i].phase_x = between(dice, 0, TWO_PI);
        bend.waves[i].phase_y = between(dice, 0, TWO_PI);
    }
    return bend;
}

/* From the figure's square to pixels. */
static struct point bend_point(const struct bend *bend, struct point p)
{
    double x = p.x - .5, y = p.y - .5;
    double px = bend->matrix[0] * x + bend->matrix[1] * y + bend->shift_x;
    double py = bend->matrix[2] * x + bend->matrix[3] * y + bend->shift_y;
    for (int i = 0; i < WAVES; i++) {
        double along = bend->waves[i].turn_x * x + bend->waves[i].turn_y * y;
        px += bend->waves[i].amount_x * sin(along + bend->waves[i].phase_x);
        py += bend->waves[i].amount_y * sin(along + bend->waves[i].phase_y);
    }
    return (struct point){DIGITS_SIDE * (.5 + .78 * px), DIGITS_SIDE * (.5 + .78 * py)};
}

/* --- ink --- */

/* A straight piece with round ends; each pixel keeps the darkest ink it got. */
static void ink_piece(double *ink, struct point a, struct point b, double radius,
                      double strength)
{
    double reach = radius + 1;
    int left = (int)fmax(floor(fmin(a.x, b.x) - reach), 0);
    int right = (int)fmin(ceil(fmax(a.x, b.x) + reach), DIGITS_SIDE - 1);
    int top = (int)fmax(floor(fmin(a.y, b.y) - reach), 0);
    int bottom = (int)fmin(ceil(fmax(a.y, b.y) + reach), DIGITS_SIDE - 1);
    double dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
    for (int y = top; y <= bottom; y++) {
        for (int x = left; x <= right; x++) {
            double px = x + .5 - a.x, py = y + .5 - a.y;
            double t = length > 0 ? fmin(fmax((px * dx + py * dy) / length, 0), 1) : 0;
            double distance = hypot(px - t * dx, py - t * dy);
            double cover = fmin(fmax(radius + .5 - distance, 0), 1) * strength;
            double *pixel = &ink[y * DIGITS_SIDE + x];
            *pixel = fmax(*pixel, cover);
        }
    }
}

/* The point at `t` between p[1] and p[2] of a smooth curve through four points. */
static struct point curve_point(const struct point *p, double t)
{
    double w0 = ((2 - t) * t - 1) * t / 2, w1 = ((3 * t - 5) * t * t + 2) / 2;
    double w2 = ((4 - 3 * t) * t + 1) * t / 2, w3 = (t - 1) * t * t / 2;
    return (struct point){w0 * p[0].x + w1 * p[1].x + w2 * p[2].x + w3 * p[3].x,
                          w0 * p[0].y + w1 * p[1].y + w2 * p[2].y + w3 * p[3].y};
}

static void ink_stroke(double *ink, const struct stroke *stroke, const struct bend *bend,
                       double radius, struct dice *dice)
{
    struct point points[POINTS_MAX + 2]; /* the ends twice */
    int count = stroke->points_count;
    for (int i = 0; i < count; i++) {
        points[i + 1].x = stroke->points[i].x + .025 * normal(dice);
        points[i + 1].y = stroke->points[i].y + .025 * normal(dice);
    }
    points[0] = points[1];
    points[count + 1] = points[count];
    struct point last = bend_point(bend, points[1]);
    for (int i = 0; i < count - 1; i++) {
        for (int step = 1; step <= CURVE_STEPS; step++) {
            struct point next =
                bend_point(bend, curve_point(points + i, (double)step / CURVE_STEPS));
            ink_piece(ink, last, next, radius * between(dice, .85, 1.15),
                      between(dice, .75, 1));
            last = next;
        }
    }
}

/* Stray lines, a worn spot, and grain. */
static void smudge(double *ink, struct dice *dice)
{
    for (int lines = (int)between(dice, 0, 2.5); lines > 0; lines--) {
        struct point a = {between(dice, 0, DIGITS_SIDE), between(dice, 0, DIGITS_SIDE)};
        double angle = between(dice, 0, TWO_PI), length = between(dice, 2, 8);
        struct point b = {a.x + length * cos(angle), a.y + length * sin(angle)};
        ink_piece(ink, a, b, between(dice, .2, .7), between(dice, .3, .8));
    }
    double worn_x = between(dice, 4, DIGITS_SIDE - 4),
           worn_y = between(dice, 4, DIGITS_SIDE - 4);
    double worn_radius = between(dice, 1, 3), worn = between(dice, 0, .9);
    double grain = between(dice, .02, .12);
    for (int i = 0; i < DIGITS_PIXELS; i++) {
        double distance = hypot(i % DIGITS_SIDE + .5 - worn_x, i / DIGITS_SIDE + .5 - worn_y);
        if (distance < worn_radius)
            ink[i] *= 1 - worn;
        ink[i] += grain * normal(dice);
    }
}

int digits_draw(uint64_t seed, int64_t index, uint8_t *pixels)
{
    struct dice dice = {seed};
    dice.state = roll(&dice) ^ (uint64_t)index * UINT64_C(0xd1342543de82ef95);
    roll(&dice);

    int digit = (int)(roll(&dice) % 10);
    const struct figure *ways[ARRAY_LEN(figures)];
    int ways_count = 0;
    for (int i = 0; i < ARRAY_LEN(figures); i++) {
        if (figures[i].digit == digit)
            ways[ways_count++] = &figures[i];
    }
    const struct figure *figure = ways[roll(&dice) % (uint64_t)ways_count];

    double ink[DIGITS_PIXELS] = {0};
    struct bend bend = bend_roll(&dice);
    double radius = between(&dice, .6, 1.6);
    for (int i = 0; i < STROKES_MAX && figure->strokes[i].points_count; i++)
        ink_stroke(ink, &figure->strokes[i], &bend, radius, &dice);
    smudge(ink, &dice);
    for (int i = 0; i < DIGITS_PIXELS; i++)
        pixels[i] = (uint8_t)lround(255 * fmin(fmax(ink[i], 0), 1));
    return digit;
}

/* --- files --- */

static void put_number(FILE *file, int64_t number)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        putc((int)(number >> shift & 0xff), file);
}

/* Closes the file; false if anything written did not reach it. */
static bool file_end(FILE *file, const char *path, struct error *err)
{
    bool ok = fflush(file) == 0 && !ferror(file) && fsync(fileno(file)) == 0;
    if (!ok)
        error_errno(err, EXHAUSTED, "cannot write %s", path);
    return (fclose(file) == 0 || !ok || error_errno(err, EXHAUSTED, "cannot write %s", path)) &&
           ok;
}

static bool set_write(const char *folder, const char *set, int64_t first, int64_t count,
                      uint64_t seed, struct error *err)
{
    char *images_path = alloc_printf("%s/%s-images-idx3-ubyte", folder, set);
    char *labels_path = alloc_printf("%s/%s-labels-idx1-ubyte", folder, set);
    FILE *images = fopen(images_path, "wbe"),
         *labels = images ? fopen(labels_path, "wbe") : NULL;
    bool ok = images && labels;
    if (!ok)
        error_errno(err, DENIED, "cannot create %s", images ? labels_path : images_path);
    if (ok) {
        put_number(images, 0x803);
        put_number(images, count);
        put_number(images, DIGITS_SIDE);
        put_number(images, DIGITS_SIDE);
        put_number(labels, 0x801);
        put_number(labels, count);
    }
    for (int64_t i = 0; ok && i < count; i++) {
        uint8_t pixels[DIGITS_PIXELS];
        putc(digits_draw(seed, first + i, pixels), labels);
        if (fwrite(pixels, 1, sizeof(pixels), images) < sizeof(pixels))
            break; /* file_end() tells */
    }
    if (images && !file_end(images, images_path, err))
        ok = false;
    if (labels && !file_end(labels, labels_path, err))
        ok = false;
    free(images_path);
    free(labels_path);
    return ok;
}

bool digits_write(const char *folder, int64_t train_count, int64_t test_count, uint64_t seed,
                  struct error *err)
{
    const int64_t test_first = INT64_C(1) << 40; /* far from any training picture */
    return set_write(folder, "train", 0, train_count, seed, err) &&
           set_write(folder, "t10k", test_first, test_count, seed, err);
}
