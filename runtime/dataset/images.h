/*
 * images.h - image files as examples: decoded, brought to one size, with the number of a class.
 *
 * DESIGN: images_check() decodes all files with one thread for each processor (images_main).
 * They take the next file's number from a counter under the lock, which also guards what was
 * found; each image has a place of its own, so nothing depends on who was first.
 */
#pragma once

#include "runtime/dataset/dataset.h"

struct error;
struct images;

struct images_options {
    int64_t height, width; /* 0: those of the first image, which are put here */
    bool same_size;        /* all images must have it; else they are brought to it */
    int64_t channels;      /* 1, 3 */
    int64_t skip_max;      /* damaged files that may be passed over */
    int64_t memory; /* pixels of more than so many bytes are decoded again when asked for;
                     * what is held is taken off */
};

struct images *images_new(void); /* owned by the caller */
void images_free(struct images *images);

/* Adds a file of a class; takes `path`. */
void images_add(struct images *images, char *path, int class);

/*
 * Decodes every file; those that are damaged are left out and added to `*skipped`.  `folder`:
 * where they are, for errors.
 *
 * Fails with INVALID (no files, or of different sizes), DATA_LOSS (a damaged file, what is
 * wrong with it, or more of them than may be), EXHAUSTED.
 */
bool images_check(struct images *images, const char *folder, struct images_options *options,
                  int64_t *skipped, struct error *err) CHECKED;

/* The images and their classes, columns 0 and 1, after images_check().  Takes `images`. */
struct dataset_examples *images_examples(struct images *images);
