/* dataset_internal.h - the formats that dataset.c knows beside IDX. */
#pragma once

#include "runtime/tensor.h"

struct error;

/* Whether the folder holds CIFAR-10's binary batches. */
bool dataset_is_cifar(const char *folder);

/* Images and labels to train on, then to test on; filled ones are owned even after a failure.
 */
bool dataset_read_cifar(const char *folder, struct tensor owned[4], struct error *err) CHECKED;
