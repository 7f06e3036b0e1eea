/*
 * crc32c.c - CRC-32C by the processor's instruction where there is one, by tables elsewhere.
 *
 * The instruction has a latency of three cycles and a throughput of one, so three blocks are
 * summed side by side.  Their sums are joined by multiplying with x^(8 * block) modulo the
 * polynomial, which four tables hold ready.
 */

#include <pthread.h>

#include "proto/crc32c.h"

#define CRC32C_POLYNOMIAL 0x82f63b78u /* reversed */
#define CRC32C_BLOCK 2048             /* bytes of each of the three */

static pthread_once_t crc32c_once = PTHREAD_ONCE_INIT;
static uint32_t crc32c_bytes[8][256]; /* [k][b]: byte b followed by k zero bytes */
static uint32_t crc32c_shift[4]
                            [256]; /* [k][b]: byte k of a sum, CRC32C_BLOCK zero bytes later */
static bool crc32c_hardware;

static uint32_t crc32c_by_table(uint32_t sum, const unsigned char *bytes, size_t size)
{
    for (; size >= 8; bytes += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        word ^= sum;
        sum = 0;
        for (int i = 0; i < 8; i++)
            sum ^= crc32c_bytes[7 - i][(word >> (8 * i)) & 0xff];
    }
    for (; size; bytes++, size--)
        sum = crc32c_bytes[0][(sum ^ *bytes) & 0xff] ^ (sum >> 8);
    return sum;
}

static void crc32c_prepare(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t sum = b;
        for (int bit = 0; bit < 8; bit++)
            sum = sum & 1 ? (sum >> 1) ^ CRC32C_POLYNOMIAL : sum >> 1;
        crc32c_bytes[0][b] = sum;
    }
    for (int k = 1; k < 8; k++) {
        for (int b = 0; b < 256; b++) {
            uint32_t sum = crc32c_bytes[k - 1][b];
            crc32c_bytes[k][b] = crc32c_bytes[0][sum & 0xff] ^ (sum >> 8);
        }
    }
    static const unsigned char zeros[CRC32C_BLOCK];
    uint32_t bit_shifted[32]; /* the sum is linear: 32 single bits give all */
    for (int bit = 0; bit < 32; bit++)
        bit_shifted[bit] = crc32c_by_table(1u << bit, zeros, sizeof(zeros));
    for (int k = 0; k < 4; k++) {
        for (int b = 0; b < 256; b++) {
            for (int bit = 0; bit < 8; bit++)
                crc32c_shift[k][b] ^= b & (1 << bit) ? bit_shifted[8 * k + bit] : 0;
        }
    }
#ifdef __x86_64__
    __builtin_cpu_init();
    crc32c_hardware = __builtin_cpu_supports("sse4.2");
#endif
}

#ifdef __x86_64__

static uint32_t crc32c_shifted(uint32_t sum)
{
    return crc32c_shift[0][sum & 0xff] ^ crc32c_shift[1][(sum >> 8) & 0xff] ^
           crc32c_shift[2][(sum >> 16) & 0xff] ^ crc32c_shift[3][sum >> 24];
}

static inline uint64_t crc32c_word(const unsigned char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
}

__attribute__((target("sse4.2"))) static uint32_t
crc32c_by_hardware(uint32_t sum, const unsigned char *bytes, size_t size)
{
    for (; size >= 3 * CRC32C_BLOCK; bytes += 3 * CRC32C_BLOCK, size -= 3 * CRC32C_BLOCK) {
        uint64_t a = sum, b = 0, c = 0;
        for (size_t i = 0; i < CRC32C_BLOCK; i += 8) {
            a = __builtin_ia32_crc32di(a, crc32c_word(bytes + i));
            b = __builtin_ia32_crc32di(b, crc32c_word(bytes + CRC32C_BLOCK + i));
            c = __builtin_ia32_crc32di(c, crc32c_word(bytes + 2 * CRC32C_BLOCK + i));
        }
        sum = crc32c_shifted(crc32c_shifted((uint32_t)a) ^ (uint32_t)b) ^ (uint32_t)c;
    }
    uint64_t wide = sum;
    for (; size >= 8; bytes += 8, size -= 8)
        wide = __builtin_ia32_crc32di(wide, crc32c_word(bytes));
    sum = (uint32_t)wide;
    for (; size; bytes++, size--)
        sum = __builtin_ia32_crc32qi(sum, *bytes);
    return sum;
}

#else

static uint32_t crc32c_by_hardware(uint32_t sum, const unsigned char *bytes, size_t size)
{
    return crc32c_by_table(sum, bytes, size);
}

#endif

uint32_t crc32c_extend(uint32_t crc, const void *bytes, size_t size)
{
    pthread_once(&crc32c_once, crc32c_prepare);
    if (crc32c_hardware)
        return ~crc32c_by_hardware(~crc, bytes, size);
    return ~crc32c_by_table(~crc, bytes, size);
}

uint32_t crc32c_extend_portable(uint32_t crc, const void *bytes, size_t size)
{
    pthread_once(&crc32c_once, crc32c_prepare);
    return ~crc32c_by_table(~crc, bytes, size);
}
