/* philox.c - one block of Philox 4x32-10. */

#include "runtime/philox.h"

void philox_block(const struct philox *philox, uint64_t index, uint32_t words[4])
{
    uint64_t low = philox->low + index, high = philox->high + (low < index);
    uint32_t c[4] = {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high,
                     (uint32_t)(high >> 32)};
    uint32_t k0 = (uint32_t)philox->key, k1 = (uint32_t)(philox->key >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c[0], b = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k0, (uint32_t)b,
                            (uint32_t)(a >> 32) ^ c[3] ^ k1, (uint32_t)a};
        memcpy(c, next, sizeof(c));
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    memcpy(words, c, sizeof(c));
}
