/*
 * download.h - a file as the answer: whole, a part of it, or only that it is the same still.
 */
#pragma once

#include "base/base.h"

struct error;
struct request;

/*
 * Answers with a regular file that is open (takes it), always as a download.  It has an ETag
 * (its size and when it was written), which If-None-Match and If-Range may name; a Range of
 * one part is answered with 206, one that lies behind the end with 416 (OUT_OF_RANGE), and any
 * other with the whole, as RFC 9110 lets us.
 */
bool download_reply(struct request *req, int file, struct error *err) CHECKED;

enum download_part { DOWNLOAD_WHOLE, DOWNLOAD_PART, DOWNLOAD_NOTHING };

/* What of `size` bytes the header "Range" (NULL: none) asks for; a part is `count` from
 * `first` on. */
enum download_part download_range(const char *header, int64_t size, int64_t *first,
                                  int64_t *count);
