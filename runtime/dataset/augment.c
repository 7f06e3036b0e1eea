/* augment.c - the list of classes, worked through. */

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/dataset/augment_internal.h"

#define AUGMENT_TAG                                                                            \
    UINT64_C(0x6175676d656e7400) /* sets our stream apart; the step is added                   \
                                  */
#define AUGMENT_BLOCKS_BITS 4    /* blocks of random numbers for each example */

#define AUGMENT_ROW(name) &augment_##name,
static const struct augment_class *const classes[] = {AUGMENTS(AUGMENT_ROW)};

static const struct config_class *class_at(int index)
{
    return index < ARRAY_LEN(classes) ? &classes[index]->config : NULL;
}

const struct config_family augment_family = {
    .what = "augmentation", .key = "name", .at = class_at};

struct augment {
    int64_t seed;
    int steps_count;
    int64_t largest; /* elements of the largest image on the way */
    struct augment_step steps[];
};

/* --- chance --- */

double augment_uniform(struct augment_draw *draw)
{
    if (draw->fixed)
        return 0.5;
    if (!draw->left) {
        assert(draw->block < 1 << AUGMENT_BLOCKS_BITS);
        philox_block(&draw->philox, draw->block++, draw->words);
        draw->left = 4;
    }
    return draw->words[--draw->left] * 0x1p-32;
}

int64_t augment_between(struct augment_draw *draw, int64_t low, int64_t high)
{
    assert(low <= high);
    return low + (int64_t)(augment_uniform(draw) * (double)(high - low + 1));
}

/* --- the list --- */

struct augment *augment_new(const struct config *const *configs, int count,
                            const struct shape *image, int64_t seed, struct error *err)
{
    static_assert(offsetof(struct augment_class, config) == 0, "it begins with its class");
    char text[SHAPE_TEXT_BYTES];
    assert(count > 0);
    if (image->rank != 3) {
        error_at(err, configs[0]->pointer, INVALID,
                 "%s is for images (height, width, channels), the data has %s",
                 configs[0]->class->name, shape_text(image, text, sizeof(text)));
        return NULL;
    }
    struct augment *augment =
        alloc_bytes(sizeof(*augment) + (size_t)count * sizeof(augment->steps[0]));
    struct shape shape = *image;
    augment->seed = seed;
    augment->steps_count = count;
    augment->largest = shape_count(image);
    for (int i = 0; i < count; i++) {
        struct augment_step *step = &augment->steps[i];
        *step = (struct augment_step){(const struct augment_class *)configs[i]->class,
                                      configs[i], shape, shape};
        if (step->class->prepare && !step->class->prepare(step, err)) {
            free(augment);
            return NULL;
        }
        shape = step->to;
        if (shape_count(&shape) > augment->largest)
            augment->largest = shape_count(&shape);
    }
    return augment;
}

void augment_free(struct augment *augment)
{
    free(augment);
}

const struct shape *augment_shape(const struct augment *augment)
{
    return &augment->steps[augment->steps_count - 1].to;
}

void augment_run(const struct augment *augment, int64_t position, const float *from, float *to)
{
    size_t largest = (size_t)augment->largest;
    float *own = alloc_array(2 * largest, sizeof(*own));
    const float *now = from;
    float *next = own;
    for (int i = 0; i < augment->steps_count; i++) {
        const struct augment_step *step = &augment->steps[i];
        struct augment_draw draw = {
            .fixed = position < 0,
            .philox = {.key = (uint64_t)augment->seed,
                       .low = (uint64_t)position << AUGMENT_BLOCKS_BITS,
                       .high = AUGMENT_TAG + (uint64_t)i},
        };
        if (draw.fixed && !step->class->changes_size)
            continue;
        step->class->run(step, &draw, now, next);
        now = next;
        next = now == own ? own + largest : own;
    }
    memcpy(to, now, (size_t)shape_count(augment_shape(augment)) * sizeof(*to));
    free(own);
}
