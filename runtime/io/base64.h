/* base64.h - bytes in JSON, as {"b64": "..."} has them. */
#pragma once

#include "base/base.h"

struct str;

void base64_encode(const void *bytes, size_t size, struct str *out);

/* Appends the bytes; false when the text is none.  Both alphabets are read. */
bool base64_decode(const char *text, struct str *out);
