/*
 * summary.h - summaries made of tensors: by ops that give them, and by ops that write them into
 * an event file.  Seen by *_pb.c only.
 */
#pragma once

#include "base/arena.h"
#include "kernels/ref/numbers.h"

struct Tensorflow__Summary;
struct Tensorflow__Summary__Value;

/*
 * What makes a summary of the inputs of a call from number `first` on: the tag, the tensor, and
 * what else there is (a sample rate, the colour of bad pixels).  It lives in `arena`.
 */
typedef bool summary_make(const struct kernel_call *call, int first, struct arena *arena,
                          struct Tensorflow__Summary *summary, struct error *err);

summary_make kernel_summary_scalar;    /* one number for each tag */
summary_make kernel_summary_histogram; /* of all the numbers */
summary_make kernel_summary_image;     /* of the first `max_images` of a batch */
summary_make kernel_summary_audio;     /* of the first `max_outputs` of a batch */

/* A whole tensor; `metadata` is a serialized SummaryMetadata, taken for none if malformed. */
bool kernel_summary_tensor(const struct tensor *tag, const struct tensor *tensor,
                           const struct tensor *metadata, struct arena *arena,
                           struct Tensorflow__Summary *summary, struct error *err) CHECKED;

/* Output 0 becomes the serialized summary of what `make` makes of the inputs from 0 on. */
bool kernel_summary_give(struct kernel_call *call, summary_make *make,
                         struct error *err) CHECKED;

/* A scalar of strings as text; INVALID. */
bool kernel_summary_tag(const struct tensor *tag, struct arena *arena, char **text,
                        struct error *err) CHECKED;

/* The summary's only value so far: made, with that tag. */
struct Tensorflow__Summary__Value *kernel_summary_value(struct Tensorflow__Summary *summary,
                                                        char *tag, struct arena *arena);
