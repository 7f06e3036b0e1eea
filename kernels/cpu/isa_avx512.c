/* isa_avx512.c - the inner loops for AVX-512 F, DQ, BW, VL; the Makefile compiles this file for
 * them. */
#ifdef __x86_64__
#define ISA isa_avx512
#define ISA_NAME "avx512"
#define LANES 16
#define TILE_ROWS 12
#include "kernels/cpu/isa_body.h"
#endif
