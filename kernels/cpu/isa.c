/* isa.c - which instruction set the CPU kernels use. */
#include "kernels/cpu/isa.h"

#include <pthread.h>
#include <stdlib.h>

static const struct isa *chosen;

#ifdef __x86_64__
static const struct isa *with_bf16(void)
{
    static struct isa both;
    both = isa_avx512;
    both.name = "avx512_bf16";
    both.bf16 = isa_avx512_bf16;
    return &both;
}
#endif

static void choose_once(void)
{
    chosen = &isa_base;
#ifdef __x86_64__
    const char *wish = getenv("TRAINYARD_ISA");
    int most = !wish || !strcmp(wish, "avx512_bf16") ? 3
               : !strcmp(wish, "avx512")             ? 2
               : !strcmp(wish, "avx2")               ? 1
                                                     : 0;
    __builtin_cpu_init();
    if (most >= 1 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        chosen = &isa_avx2;
    if (most >= 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        chosen = &isa_avx512;
    if (most >= 3 && chosen == &isa_avx512 && __builtin_cpu_supports("avx512bf16"))
        chosen = with_bf16();
#endif
}

const struct isa *isa(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose_once);
    return chosen;
}
