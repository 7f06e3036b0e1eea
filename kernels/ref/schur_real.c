/*
 * schur_real.c - a real square matrix as u t u', with blocks of one or two rows on the diagonal
 * of t: Francis' steps of two shifts at once.
 */

#include "kernels/ref/linear.h"

#include <math.h>

struct francis {
    double complex *t, *u;
    int64_t n;
    double epsilon, least;
};

static double at(const struct francis *f, int64_t row, int64_t column)
{
    return creal(f->t[row * f->n + column]);
}

/* Where the block begins that ends at `last`. */
static int64_t block_start(const struct francis *f, int64_t last)
{
    int64_t i = last;
    for (; i > 0; i--) {
        double around = fabs(at(f, i - 1, i - 1)) + fabs(at(f, i, i));
        if (fabs(at(f, i, i - 1)) <= fmax(around * f->epsilon, f->least))
            break;
    }
    return i;
}

/* A block of two rows becomes triangular if its eigenvalues are real. */
static void split_two(struct francis *f, int64_t last, double moved)
{
    int64_t n = f->n, before = last - 1;
    double p = (at(f, before, before) - at(f, last, last)) / 2;
    double q = p * p + at(f, last, before) * at(f, before, last);
    f->t[last * n + last] += moved;
    f->t[before * n + before] += moved;
    if (q >= 0) {
        double complex r;
        double z = sqrt(fabs(q));
        struct rotation g =
            kernel_linear_rotation(p >= 0 ? p + z : p - z, at(f, last, before), &r);
        struct rotation back = {g.c, -g.s};
        kernel_linear_rotate(f->t + before * n + before, f->t + last * n + before, 1,
                             n - before, back);
        kernel_linear_rotate(f->t + before, f->t + last, n, last + 1, back);
        kernel_linear_rotate(f->u + before, f->u + last, n, n, back);
        f->t[last * n + before] = 0;
    }
    if (before > 0)
        f->t[before * n + before - 1] = 0;
}

/* Reflects rows and columns [k, k + count); what it made of x is in the result. */
static double reflect(struct francis *f, double complex *x, int64_t k, int64_t count,
                      int64_t rows)
{
    int64_t n = f->n;
    struct reflection r = kernel_linear_reflect(x, 1, count);
    if (r.beta != 0) {
        kernel_linear_reflect_left(f->t + k * n + k, n, count, n - k, x, 1, r.tau);
        kernel_linear_reflect_right(f->t + k, n, rows, count, x, 1, r.tau);
        kernel_linear_reflect_right(f->u + k, n, n, count, x, 1, r.tau);
    }
    return r.beta;
}

/* One step on the block [first, last], of three rows or more. */
static void francis_step(struct francis *f, int64_t first, int64_t last, const double shift[3])
{
    int64_t n = f->n, start = last - 2;
    double complex v[3];
    for (;; start--) {
        double here = at(f, start, start), r = shift[0] - here, s = shift[1] - here;
        v[0] = (r * s - shift[2]) / at(f, start + 1, start) + at(f, start, start + 1);
        v[1] = at(f, start + 1, start + 1) - here - r - s;
        v[2] = at(f, start + 2, start + 1);
        if (start == first)
            break;
        double left = at(f, start, start - 1) * (fabs(creal(v[1])) + fabs(creal(v[2])));
        double around =
            fabs(at(f, start - 1, start - 1)) + fabs(here) + fabs(at(f, start + 1, start + 1));
        if (fabs(left) < f->epsilon * creal(v[0]) * around)
            break;
    }
    for (int64_t k = start; k < last; k++) {
        int64_t count = k + 2 <= last ? 3 : 2;
        bool begins = k == start;
        for (int64_t i = 0; !begins && i < count; i++)
            v[i] = f->t[(k + i) * n + k - 1];
        double beta = reflect(f, v, k, count, (last < k + 3 ? last : k + 3) + 1);
        if (beta != 0 && begins && k > first)
            f->t[k * n + k - 1] *= -1;
        else if (beta != 0 && !begins)
            f->t[k * n + k - 1] = beta;
    }
    for (int64_t i = start + 2; i <= last; i++) {
        f->t[i * n + i - 2] = 0;
        if (i > start + 2)
            f->t[i * n + i - 3] = 0;
    }
}

/* What the last two rows of the block tell; now and then something else, to get on. */
static void shift_of(struct francis *f, int64_t last, int64_t round, double *moved,
                     double shift[3])
{
    int64_t n = f->n;
    shift[0] = at(f, last, last);
    shift[1] = at(f, last - 1, last - 1);
    shift[2] = at(f, last, last - 1) * at(f, last - 1, last);
    if (round == 0 || round % 10 != 0)
        return;
    *moved += shift[0];
    double here = shift[0];
    for (int64_t i = 0; i <= last; i++)
        f->t[i * n + i] -= here;
    double size = fabs(at(f, last, last - 1)) + fabs(at(f, last - 1, last - 2));
    shift[0] = shift[1] = 0.75 * size;
    shift[2] = -0.4375 * size * size;
}

bool kernel_linear_schur_real(double complex *a, double complex *u, int64_t n, double epsilon)
{
    struct francis f = {a, u, n, epsilon, 0};
    kernel_linear_hessenberg(a, u, n);
    double norm = 0, moved = 0;
    for (int64_t i = 0; i < n * n; i++)
        norm += cabs(a[i]);
    f.least = fmax(norm * epsilon * epsilon, 1e-300);
    int64_t last = n - 1, round = 0;
    for (int64_t total = 0; last >= 0; total++) {
        if (total > 40 * n + 40)
            return false;
        int64_t first = block_start(&f, last);
        if (first == last) {
            a[last * n + last] += moved;
            if (last > 0)
                a[last * n + last - 1] = 0;
            last--;
            round = 0;
        } else if (first == last - 1) {
            split_two(&f, last, moved);
            last -= 2;
            round = 0;
        } else {
            double shift[3];
            shift_of(&f, last, round++, &moved, shift);
            francis_step(&f, first, last, shift);
        }
    }
    return true;
}
