/*
 * fuzz.h - what fuzz targets share.  Each is one file, fuzz_NAME.c, with its seeds in
 * corpus/NAME.
 *
 * `make fuzz F=NAME S=seconds` runs one.  A target must not leak, crash, hang or take much
 * memory, whatever the input.
 */
#pragma once

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/error.h"
#include "base/str.h"
#include "proto/crc32c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Something that must hold. */
#define FUZZ_CHECK(condition)                                                                  \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                    \
            abort();                                                                           \
        }                                                                                      \
    } while (0)

/* Writes the bytes to `path`, which must work. */
static inline void fuzz_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    FUZZ_CHECK(file);
    FUZZ_CHECK(fwrite(bytes, 1, size, file) == size);
    FUZZ_CHECK(fclose(file) == 0);
}

/* A path of this process's own in memory, where there is such a folder. */
static inline const char *fuzz_path(char out[64], const char *name)
{
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(out, 64, "%s/fuzz-%ld-%s", folder, (long)getpid(), name);
    return out;
}

/* For targets whose formats have checksums: all sums are 0, so that mutations get past them. */
#define FUZZ_WITHOUT_CHECKSUMS                                                                 \
    uint32_t crc32c_extend(uint32_t crc, const void *bytes, size_t size)                       \
    {                                                                                          \
        (void)crc;                                                                             \
        (void)bytes;                                                                           \
        (void)size;                                                                            \
        return 0;                                                                              \
    }
