/* use_gpu.c - what a test does on a GPU through CUDA's driver, loaded when it is there: use_gpu
 * MIB SECONDS
 *
 * Says which GPU it has and how much of its memory is free, takes MIB of it, and writes to them
 * for so long.  Ends with 3 where it may use none, with 1 when the driver fails. */

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LOOKUP(name) *(void **)&name##_p = dlsym(library, #name)
#define TRY(call) (said = #call, code = (call))

enum { NO_DEVICE = 100 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    size_t bytes = (size_t)(argc > 1 ? atol(argv[1]) : 1) << 20, free_bytes = 0, total = 0;
    double seconds = argc > 2 ? atof(argv[2]) : 0;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    int (*cuInit_p)(unsigned), (*cuDeviceGetCount_p)(int *), (*cuDeviceGet_p)(int *, int);
    int (*cuDeviceGetName_p)(char *, int, int), (*cuDevicePrimaryCtxRetain_p)(void **, int);
    int (*cuCtxSetCurrent_p)(void *), (*cuMemGetInfo_v2_p)(size_t *, size_t *);
    int (*cuMemAlloc_v2_p)(unsigned long long *, size_t);
    int (*cuMemsetD8_v2_p)(unsigned long long, unsigned char, size_t),
        (*cuCtxSynchronize_p)(void);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    LOOKUP(cuInit), LOOKUP(cuDeviceGetCount), LOOKUP(cuDeviceGet), LOOKUP(cuDeviceGetName);
    LOOKUP(cuDevicePrimaryCtxRetain), LOOKUP(cuCtxSetCurrent), LOOKUP(cuMemGetInfo_v2);
    LOOKUP(cuMemAlloc_v2), LOOKUP(cuMemsetD8_v2), LOOKUP(cuCtxSynchronize);

    int code, count = 0, gpu;
    const char *said;
    char name[96] = "";
    void *context;
    unsigned long long memory = 0;
    if (TRY(cuInit_p(0)) == NO_DEVICE ||
        (!code && !TRY(cuDeviceGetCount_p(&count)) && count == 0)) {
        printf("no GPU for me\n");
        return 3;
    }
    if (!code && !TRY(cuDeviceGet_p(&gpu, 0)) &&
        !TRY(cuDeviceGetName_p(name, sizeof(name), gpu)) &&
        !TRY(cuDevicePrimaryCtxRetain_p(&context, gpu)) && !TRY(cuCtxSetCurrent_p(context)) &&
        !TRY(cuMemGetInfo_v2_p(&free_bytes, &total)) && !TRY(cuMemAlloc_v2_p(&memory, bytes))) {
        printf("pid %d has %d of %s, free %zu of %zu MiB\n", (int)getpid(), count, name,
               free_bytes >> 20, total >> 20);
        fflush(stdout);
        double end = now() + seconds;
        while (!code && now() < end)
            if (!TRY(cuMemsetD8_v2_p(memory, 1, bytes)))
                TRY(cuCtxSynchronize_p());
    }
    if (code) {
        fprintf(stderr, "%s: error %d of CUDA's driver\n", said, code);
        return 1;
    }
    printf("done\n");
    return 0;
}
