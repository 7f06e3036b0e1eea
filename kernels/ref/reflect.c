/* reflect.c - products, reflections and rotations, of which factorisations are made. */

#include "kernels/ref/linear.h"

#include <math.h>

void kernel_linear_product(const double complex *a, bool adjoint_a, const double complex *b,
                           bool adjoint_b, int64_t n, int64_t k, int64_t m, double complex *out)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < m; c++) {
            double complex sum = 0;
            for (int64_t s = 0; s < k; s++) {
                double complex left = adjoint_a ? conj(a[s * n + i]) : a[i * k + s];
                double complex right = adjoint_b ? conj(b[c * k + s]) : b[s * m + c];
                sum += left * right;
            }
            out[i * m + c] = sum;
        }
}

static double square(double complex z)
{
    return creal(z) * creal(z) + cimag(z) * cimag(z);
}

struct reflection kernel_linear_reflect(double complex *x, int64_t step, int64_t count)
{
    double complex first = x[0];
    double tail = 0;
    for (int64_t i = 1; i < count; i++)
        tail += square(x[i * step]);
    x[0] = 1;
    if (tail <= 1e-300 && cimag(first) * cimag(first) <= 1e-300) {
        for (int64_t i = 1; i < count; i++)
            x[i * step] = 0;
        return (struct reflection){0, creal(first)};
    }
    double beta = sqrt(square(first) + tail);
    if (creal(first) >= 0)
        beta = -beta;
    for (int64_t i = 1; i < count; i++)
        x[i * step] /= first - beta;
    return (struct reflection){conj((beta - first) / beta), beta};
}

void kernel_linear_reflect_left(double complex *a, int64_t stride, int64_t rows,
                                int64_t columns, const double complex *v, int64_t step,
                                double complex tau)
{
    for (int64_t c = 0; tau != 0 && c < columns; c++) {
        double complex sum = 0;
        for (int64_t i = 0; i < rows; i++)
            sum += conj(v[i * step]) * a[i * stride + c];
        for (int64_t i = 0; i < rows; i++)
            a[i * stride + c] -= tau * v[i * step] * sum;
    }
}

void kernel_linear_reflect_right(double complex *a, int64_t stride, int64_t rows,
                                 int64_t columns, const double complex *v, int64_t step,
                                 double complex tau)
{
    for (int64_t i = 0; tau != 0 && i < rows; i++) {
        double complex sum = 0;
        for (int64_t c = 0; c < columns; c++)
            sum += a[i * stride + c] * v[c * step];
        for (int64_t c = 0; c < columns; c++)
            a[i * stride + c] -= tau * sum * conj(v[c * step]);
    }
}

static double sum_of_parts(double complex z)
{
    return fabs(creal(z)) + fabs(cimag(z));
}

struct rotation kernel_linear_rotation(double complex p, double complex q, double complex *r)
{
    if (q == 0) {
        double sign = creal(p) < 0 ? -1 : 1;
        *r = sign * p;
        return (struct rotation){sign, 0};
    }
    if (p == 0) {
        *r = cabs(q);
        return (struct rotation){0, -q / cabs(q)};
    }
    double p_size = sum_of_parts(p), q_size = sum_of_parts(q);
    double largest = p_size >= q_size ? p_size : q_size;
    double complex ps = p / largest, qs = q / largest;
    if (p_size >= q_size) {
        double u = sqrt(1 + square(qs) / square(ps));
        u = creal(p) < 0 ? -u : u;
        *r = p * u;
        return (struct rotation){1 / u, -qs * conj(ps) * (1 / u / square(ps))};
    }
    double u = largest * sqrt(square(ps) + square(qs));
    u = creal(p) < 0 ? -u : u;
    double size = cabs(p);
    *r = p / size * u;
    return (struct rotation){size / u, -conj(p / size) * (q / u)};
}

void kernel_linear_rotate(double complex *x, double complex *y, int64_t step, int64_t count,
                          struct rotation r)
{
    for (int64_t i = 0; i < count * step; i += step) {
        double complex a = x[i], b = y[i];
        x[i] = r.c * a + conj(r.s) * b;
        y[i] = -r.s * a + conj(r.c) * b;
    }
}
