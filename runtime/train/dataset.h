/*
 * dataset.h - the examples to train on: images with labels, a part to train and a part to test.
 *
 * Held in memory as the bytes of its files.  Immutable once open, and some held out if they are
 * to be: threads read it freely.
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
    struct dataset_part validation; /* what dataset_hold_out() took of `train`; else empty */
    struct tensor owned[6];         /* the bytes behind the parts */
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

/*
 * Moves `count` examples from the part to train on into `validation`: which ones follows from
 * `seed` alone, every choice as likely.  Both parts stay in the order of the files.  At most
 * once, before anybody reads.
 *
 * Fails with INVALID when none would be left to train on.
 */
bool dataset_hold_out(struct dataset *dataset, int64_t count, int64_t seed,
                      struct error *err) CHECKED;
