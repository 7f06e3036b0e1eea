/* crc32c.h - the checksum of TFRecord and of checkpoints (Castagnoli), and its mask. */
#pragma once

#include "base/base.h"

/* Continues `crc` (0 at first) over `size` bytes. */
uint32_t crc32c_extend(uint32_t crc, const void *bytes, size_t size);

/* The same without the processor's instruction: what tests hold the fast one against. */
uint32_t crc32c_extend_portable(uint32_t crc, const void *bytes, size_t size);

static inline uint32_t crc32c(const void *bytes, size_t size)
{
    return crc32c_extend(0, bytes, size);
}

/* The sum of two blocks one after the other, from their own sums and the second's size. */
uint32_t crc32c_combine(uint32_t first, uint32_t second, size_t second_size);

static inline uint32_t crc32c_mask(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

static inline uint32_t crc32c_unmask(uint32_t masked)
{
    uint32_t rotated = masked - 0xa282ead8u;
    return (rotated >> 17) | (rotated << 15);
}
