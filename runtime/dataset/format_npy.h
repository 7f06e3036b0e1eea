/*
 * format_npy.h - the elements of numpy's arrays, in memory or left in their file.
 */
#pragma once

#include "runtime/dataset/format.h"
#include "runtime/io/npy_file.h"

struct format_npy_array {
    struct tensor tensor;  /* what is held; none of a file */
    struct npy_file *file; /* owned; NULL: it is held */
    enum dtype dtype;      /* of the elements as examples have them */
    struct shape shape;    /* (examples, ...) */
};

/* Releases what it holds; fine on a zeroed one. */
void format_npy_release(struct format_npy_array *array);

/* Elements `first` .. + count of a file as examples have them: wide integers as int32, INVALID
 * where that does not hold them. */
bool format_npy_read(const struct format_npy_array *array, int64_t first, int64_t count,
                     void *out, struct error *err) CHECKED;

/* Raises the column's classes to hold every element.  INVALID when one is negative. */
bool format_npy_count_classes(struct dataset_column *column,
                              const struct format_npy_array *array, const char *where,
                              struct error *err) CHECKED;

/*
 * The part's examples are these arrays, one for each column.  Takes them, also when it fails:
 * as format_memory().
 */
bool format_npy_finish(struct dataset *dataset, struct dataset_part *part,
                       struct format_npy_array *arrays, const char *where,
                       struct error *err) CHECKED;
