/* isa_base.c - the inner loops for any CPU: four lanes, what the compiler's baseline has. */
#define ISA isa_base
#define ISA_NAME "base"
#define LANES 4
#define TILE_ROWS 4
#include "kernels/cpu/isa_body.h"
