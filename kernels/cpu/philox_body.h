/*
 * philox_body.h - Philox 4x32-10 (Salmon et al., 2011), one counter per lane; see isa.h.
 */

typedef uint32_t uvec __attribute__((vector_size(LANES * 4)));
typedef uint64_t wide_vec __attribute__((vector_size(LANES * 8)));

INLINE void multiply_wide(uint32_t factor, uvec x, uvec *high, uvec *low)
{
    wide_vec product = __builtin_convertvector(x, wide_vec) * (uint64_t)factor;
    *high = __builtin_convertvector(product >> 32, uvec);
    *low = x * factor;
}

static void philox(uint64_t key, uint64_t counter_high, uint64_t counter_low, int64_t blocks,
                   uint32_t *out)
{
    for (int64_t i = 0; i < blocks; i += LANES) {
        uvec c0, c1, c2, c3;
        for (int lane = 0; lane < LANES; lane++) {
            uint64_t low = counter_low + (uint64_t)i + (uint64_t)lane;
            uint64_t high = counter_high + (low < counter_low); /* carried */
            c0[lane] = (uint32_t)low;
            c1[lane] = (uint32_t)(low >> 32);
            c2[lane] = (uint32_t)high;
            c3[lane] = (uint32_t)(high >> 32);
        }
        uint32_t key0 = (uint32_t)key;
        uint32_t key1 = (uint32_t)(key >> 32);
        for (int round = 0; round < 10; round++) {
            uvec high0, low0, high1, low1;
            multiply_wide(0xD2511F53u, c0, &high0, &low0);
            multiply_wide(0xCD9E8D57u, c2, &high1, &low1);
            c0 = high1 ^ c1 ^ key0;
            c1 = low1;
            c2 = high0 ^ c3 ^ key1;
            c3 = low0;
            key0 += 0x9E3779B9u;
            key1 += 0xBB67AE85u;
        }
        for (int lane = 0; lane < LANES && i + lane < blocks; lane++) {
            uint32_t *block = out + (i + lane) * 4;
            block[0] = c0[lane];
            block[1] = c1[lane];
            block[2] = c2[lane];
            block[3] = c3[lane];
        }
    }
}
