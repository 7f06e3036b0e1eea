/*
 * crc32c_combine.c - the sum of two blocks from their own sums.
 *
 * Apart from crc32c.c, which fuzz targets replace.
 */

#include "proto/crc32c.h"

/* Polynomials over two elements, modulo Castagnoli's, bits reversed: the product. */
static uint32_t crc32c_product(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = UINT32_C(1) << 31; bit; bit >>= 1) {
        if (a & bit)
            product ^= b;
        b = b & 1 ? b >> 1 ^ 0x82f63b78u : b >> 1;
    }
    return product;
}

uint32_t crc32c_combine(uint32_t first, uint32_t second, size_t second_size)
{
    uint32_t shift = UINT32_C(1) << 31; /* 1, then x to the power of second's bits */
    uint32_t power = UINT32_C(1) << 23; /* x to the power of 8, squared each time */
    for (size_t n = second_size; n; n >>= 1) {
        if (n & 1)
            shift = crc32c_product(power, shift);
        power = crc32c_product(power, power);
    }
    return crc32c_product(shift, first) ^ second;
}
