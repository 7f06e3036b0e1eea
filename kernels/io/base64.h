/* base64.h - bytes as text, for messages. */
#pragma once

#include "base/base.h"

struct str;

/* Appends them in the usual alphabet, padded. */
void kernel_base64(const void *bytes, size_t size, struct str *out);
