/*
 * numbers.h - elements of any type as double, integer or complex, for kernels where being
 * obvious matters more than speed, and how rows of elements of any type are moved.
 */
#pragma once

#include "kernels/list.h"

#include "base/error.h"
#include "runtime/op.h"

#include <complex.h>

/*
 * For loops that may take long, each thousandth turn or so: false (CANCELLED) once the run is
 * to end.
 */
bool kernel_go_on(struct kernel_call *call, struct error *err) CHECKED;

/* A row of indices as "[0, 5]", or with what else is `between`; cut off where it does not fit.
 */
enum { ROW_TEXT_BYTES = 160 };
const char *kernel_row_text(const struct tensor *indices, int64_t row, int depth,
                            const char *between, char *out, size_t size);

/* Fails for a row, as kernel_row_text() has it, that does not come behind the one before it. */
bool kernel_fail_order(struct error *err, int64_t row, const char *text, bool repeated);

/* Fails for a label that is no class, naming all labels. */
bool kernel_fail_label(const struct tensor *labels, int64_t label, int64_t classes,
                       struct error *err);

/* Elements as numbers.  Reading loses nothing but for 64-bit integers beyond 2^53. */
typedef double kernel_load(const void *data, int64_t index);
typedef void kernel_store(void *data, int64_t index, double value);

/* For plain real types and bool; NULL for others. */
kernel_load *kernel_load_for(enum dtype dtype);
kernel_store *kernel_store_for(enum dtype dtype);

/* Integers exactly: signed and unsigned are both read as 64 bits, written cut to the type. */
typedef uint64_t kernel_load_bits(const void *data, int64_t index);
typedef void kernel_store_bits(void *data, int64_t index, uint64_t value);
kernel_load_bits *kernel_load_bits_for(enum dtype dtype);
kernel_store_bits *kernel_store_bits_for(enum dtype dtype);

/* Whether element i of `a` is greater than element j of `b`; integers are compared exactly. */
typedef bool kernel_greater(const void *a, int64_t i, const void *b, int64_t j);
kernel_greater *kernel_greater_for(enum dtype dtype);

/* CMPLX(), which not every compiler has with every libc. */
static inline double complex kernel_complex(double real, double imaginary)
{
    const double both[2] = {real, imaginary};
    double complex number;
    memcpy(&number, both, sizeof(number));
    return number;
}

/* Any number as complex. */
double complex kernel_complex_at(const struct tensor *tensor, int64_t index);
void kernel_set_complex(struct tensor *tensor, int64_t index, double complex value);

/*
 * Copies `count` elements between tensors of one type, whatever it is: strings are copied
 * deeply, handles counted.  The target's elements are given back first.
 */
void kernel_copy(struct tensor *to, int64_t to_index, const struct tensor *from,
                 int64_t from_index, int64_t count);

/* Sets `count` elements to zero, false or the empty string. */
void kernel_zero(struct tensor *to, int64_t index, int64_t count);

/* Product of the dimensions [begin, end). */
int64_t kernel_span(const struct shape *shape, int begin, int end);

/* Adds the dimensions of `from` from `first` on; fails with INVALID when they are too many. */
bool kernel_append_dims(struct shape *shape, const struct shape *from, int first,
                        struct error *err) CHECKED;

/* A scalar input as an integer; fails with INVALID naming `what` if it is not a scalar. */
bool kernel_scalar(const struct kernel_call *call, int input, const char *what, int64_t *value,
                   struct error *err) CHECKED;

/* A scalar axis of `rank` dimensions, negative from the end; fails with INVALID. */
bool kernel_axis(const struct kernel_call *call, int input, int rank, int *axis,
                 struct error *err) CHECKED;
/* The same of what sums up along one; in other words. */
bool kernel_scan_axis(const struct kernel_call *call, int input, int rank, int *axis,
                      struct error *err) CHECKED;
bool kernel_axis_at(int64_t value, int rank, int *axis, struct error *err) CHECKED;

/* Whether two inputs have one shape; fails with INVALID. */
bool kernel_same_shape(const struct kernel_call *call, int first, int second,
                       struct error *err) CHECKED;

/* The elements of a vector input as a shape; fails with INVALID on negative or too many. */
bool kernel_shape_in(const struct kernel_call *call, int input, struct shape *shape,
                     struct error *err) CHECKED;

/* The same of a tensor, whatever its own shape. */
bool kernel_shape_of(const struct tensor *tensor, struct shape *shape,
                     struct error *err) CHECKED;
