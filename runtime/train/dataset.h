/*
 * dataset.h - the examples to train on: images with labels, a part to train and a part to test.
 *
 * Held in memory as the bytes of its files.  Immutable once open: threads read it freely.
 */
#pragma once

#include "runtime/tensor.h"

struct error;

struct dataset_part {
    const uint8_t *images; /* (count, height, width, channels), 0 to 255 */
    const uint8_t *labels; /* (count) */
    int64_t count;
};

struct dataset {
    struct shape shape; /* of one image: height, width, channels */
    int64_t classes;    /* labels are 0 to classes - 1 */
    struct dataset_part train, test;
    struct tensor owned[4]; /* the bytes behind the parts */
};

/*
 * Reads the dataset in `folder`, told by the names of its files: IDX as MNIST names them
 * ("train-images-idx3-ubyte", plain or .gz), or CIFAR-10's binary batches ("data_batch_1.bin").
 *
 * Fails with NOT_FOUND (no folder, or a file missing: named), DATA_LOSS (damage: file and
 * offset), INVALID (images and labels do not fit each other).
 */
bool dataset_open(const char *folder, struct dataset *dataset, struct error *err) CHECKED;
void dataset_close(struct dataset *dataset);
