/* move.c - the loop that moves elements by steps. */

#include "kernels/ref/move.h"

struct places kernel_places(const struct shape *shape)
{
    struct places places = {.start = 0};
    int64_t step = 1;
    for (int d = shape->rank - 1; d >= 0; d--) {
        places.steps[d] = step;
        step *= shape->dims[d];
    }
    return places;
}

struct places kernel_broadcast_places(const struct shape *shape, const struct shape *all)
{
    struct places own = kernel_places(shape), places = {.start = 0};
    for (int d = 0; d < shape->rank; d++)
        if (shape->dims[d] != 1)
            places.steps[all->rank - shape->rank + d] = own.steps[d];
    return places;
}

int64_t kernel_place(const struct places *places, const struct shape *all, int64_t index)
{
    int64_t at = places->start;
    for (int d = all->rank - 1; d >= 0; d--) {
        at += index % all->dims[d] * places->steps[d];
        index /= all->dims[d];
    }
    return at;
}

/* `count` times the same element: one, then twice as many each time. */
static void repeat(struct tensor *to, int64_t to_at, const struct tensor *from, int64_t from_at,
                   int64_t count)
{
    kernel_copy(to, to_at, from, from_at, 1);
    for (int64_t done = 1; done < count; done *= 2)
        kernel_copy(to, to_at + done, to, to_at, done < count - done ? done : count - done);
}

void kernel_move(struct tensor *to, const struct places *to_places, const struct tensor *from,
                 const struct places *from_places, const int64_t *dims, int rank)
{
    int64_t index[2 * LIMIT_TENSOR_RANK] = {0};
    int64_t to_at = to_places->start, from_at = from_places->start, total = 1;
    for (int d = 0; d < rank; d++)
        total *= dims[d];
    /* Rows that are contiguous on both sides, or one element again and again, in one piece. */
    int64_t row = 1, step = rank > 0 ? from_places->steps[rank - 1] : 0;
    if (rank > 0 && to_places->steps[rank - 1] == 1 && (step == 0 || step == 1))
        row = dims[--rank];
    for (int64_t done = 0; done < total; done += row) {
        if (step == 0)
            repeat(to, to_at, from, from_at, row);
        else
            kernel_copy(to, to_at, from, from_at, row);
        for (int d = rank - 1; d >= 0; d--) {
            to_at += to_places->steps[d];
            from_at += from_places->steps[d];
            if (++index[d] < dims[d])
                break;
            to_at -= to_places->steps[d] * dims[d];
            from_at -= from_places->steps[d] * dims[d];
            index[d] = 0;
        }
    }
}
