/* string_hash.h - hashes of bytes that are the same on every machine and for ever. */
#pragma once

#include "base/base.h"

/* FarmHash's 64-bit fingerprint (Pike, 2014). */
uint64_t kernel_fingerprint64(const void *bytes, size_t size);

/* Of two fingerprints one, which depends on their order. */
uint64_t kernel_fingerprint_cat(uint64_t a, uint64_t b);

/* MurmurHash64A (Appleby, 2008), with the seed of TensorFlow's older hash. */
uint64_t kernel_legacy_hash64(const void *bytes, size_t size);

/* SipHash-2-4 (Aumasson and Bernstein, 2012). */
uint64_t kernel_siphash(const uint64_t key[2], const void *bytes, size_t size);
