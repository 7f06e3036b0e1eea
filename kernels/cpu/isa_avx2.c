/* isa_avx2.c - the inner loops for AVX2 and FMA; the Makefile compiles this file for them. */
#ifdef __x86_64__
#define ISA isa_avx2
#define ISA_NAME "avx2"
#define LANES 8
#define TILE_ROWS 6
#include "kernels/cpu/isa_body.h"
#endif
