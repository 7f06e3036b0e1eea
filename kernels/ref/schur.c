/*
 * schur.c - any square matrix as u t u*, with t upper triangular: first to a triangle with one
 * diagonal below it, by reflections, then by rotations with shifts until that diagonal is gone.
 */

#include "kernels/ref/linear.h"

#include <math.h>

void kernel_linear_hessenberg(double complex *a, double complex *u, int64_t n)
{
    for (int64_t i = 0; i < n * n; i++)
        u[i] = i % (n + 1) == 0;
    for (int64_t k = 0; k + 1 < n; k++) {
        double complex *v = a + (k + 1) * n + k;
        struct reflection r = kernel_linear_reflect(v, n, n - k - 1);
        kernel_linear_reflect_left(a + (k + 1) * n + k + 1, n, n - k - 1, n - k - 1, v, n,
                                   r.tau);
        kernel_linear_reflect_right(a + k + 1, n, n, n - k - 1, v, n, conj(r.tau));
        kernel_linear_reflect_right(u + k + 1, n, n, n - k - 1, v, n, conj(r.tau));
        v[0] = r.beta;
        for (int64_t i = 1; i < n - k - 1; i++)
            v[i * n] = 0;
    }
}

static double size_of(double complex z)
{
    return fabs(creal(z)) + fabs(cimag(z));
}

/* Sets the element below the diagonal at `i` to zero if it is next to nothing. */
static bool is_done(double complex *t, int64_t n, int64_t i, double epsilon)
{
    double around = size_of(t[i * n + i]) + size_of(t[(i + 1) * n + i + 1]);
    double complex *below = &t[(i + 1) * n + i];
    if (size_of(*below) > around * epsilon)
        return false;
    *below = 0;
    return true;
}

/* Of the last two rows' eigenvalues, that which is nearer to the last element. */
static double complex shift_of(const double complex *t, int64_t n, int64_t last, int round)
{
    const double complex *low = t + last * n + last, *high = low - n;
    if ((round == 10 || round == 20) && last >= 2)
        return fabs(creal(low[-1])) + fabs(creal(high[-2]));
    double norm = cabs(high[-1]) + cabs(high[0]) + cabs(low[-1]) + cabs(low[0]);
    double complex a = high[-1] / norm, d = low[0] / norm;
    double complex b = high[0] / norm * (low[-1] / norm), c = a - d;
    double complex root = csqrt(c * c + 4.0 * b), det = a * d - b;
    double complex one = (a + d + root) / 2, two = (a + d - root) / 2;
    if (size_of(one) > size_of(two))
        two = det / one;
    else if (size_of(two) != 0)
        one = det / two;
    return norm * (size_of(one - d) < size_of(two - d) ? one : two);
}

/* One rotation of rows and columns i and i + 1; `top`: the rows that the columns have. */
static void turn(double complex *t, double complex *u, int64_t n, int64_t i, int64_t top,
                 int64_t from, struct rotation r)
{
    struct rotation back = {conj(r.c), -r.s}, right = {r.c, -conj(r.s)};
    kernel_linear_rotate(t + i * n + from, t + (i + 1) * n + from, 1, n - from, back);
    kernel_linear_rotate(t + i, t + i + 1, n, top, right);
    kernel_linear_rotate(u + i, u + i + 1, n, n, right);
}

bool kernel_linear_schur(double complex *a, double complex *u, int64_t n, double epsilon)
{
    kernel_linear_hessenberg(a, u, n);
    int64_t last = n - 1;
    int round = 0;
    for (int64_t total = 0; total < 30 * n + 30; total++) {
        while (last > 0 && is_done(a, n, last - 1, epsilon)) {
            last--;
            round = 0;
        }
        if (last <= 0)
            return true;
        round++;
        int64_t first = last - 1;
        while (first > 0 && !is_done(a, n, first - 1, epsilon))
            first--;
        double complex r, shift = shift_of(a, n, last, round);
        struct rotation g = kernel_linear_rotation(a[first * n + first] - shift,
                                                   a[(first + 1) * n + first], &r);
        for (int64_t i = first; i < last; i++) {
            if (i > first) {
                g = kernel_linear_rotation(a[i * n + i - 1], a[(i + 1) * n + i - 1], &r);
                a[i * n + i - 1] = r;
                a[(i + 1) * n + i - 1] = 0;
            }
            int64_t top = (i + 2 < last ? i + 2 : last) + 1;
            turn(a, u, n, i, top, i, g);
        }
    }
    return false;
}
