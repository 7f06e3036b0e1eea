/* augment_internal.h - what the classes of augmentation share. */
#pragma once

#include "runtime/dataset/augment.h"

/* Numbers for one example and one step. */
struct augment_draw {
    bool fixed; /* evaluation: nothing is drawn */
    struct philox philox;
    uint64_t block;
    uint32_t words[4];
    int left; /* of words */
};

/* From 0 to 1, 1 itself never; 0.5 when nothing is drawn. */
double augment_uniform(struct augment_draw *draw);
/* From low to high, both possible; in the middle when nothing is drawn. */
int64_t augment_between(struct augment_draw *draw, int64_t low, int64_t high);

/* One class in a list. */
struct augment_step {
    const struct augment_class *class;
    const struct config *config;
    struct shape from, to;
};

struct augment_class {
    struct config_class config;
    /* (optional) Sets step->to where it differs from `from`; fails at the class's pointer. */
    bool (*prepare)(struct augment_step *step, struct error *err);
    bool changes_size; /* so it works in evaluations too */
    void (*run)(const struct augment_step *step, struct augment_draw *draw, const float *from,
                float *to);
};

#define AUGMENTS(X)                                                                            \
    X(random_flip)                                                                             \
    X(random_crop)                                                                             \
    X(random_translation)                                                                      \
    X(random_rotation)                                                                         \
    X(random_zoom)                                                                             \
    X(random_brightness)                                                                       \
    X(random_contrast)

#define AUGMENT_DECLARE(name) extern const struct augment_class augment_##name;
AUGMENTS(AUGMENT_DECLARE)
