/* isa_avx512_bf16.c - as isa_avx512.c, where the machine multiplies bfloat16 as well. */
#ifdef __x86_64__
#define ISA isa_avx512_bf16
#define ISA_NAME "avx512_bf16"
#define LANES 16
#define TILE_ROWS 12
#include "kernels/cpu/isa_body.h"
#endif
