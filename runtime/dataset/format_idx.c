/* format_idx.c - pictures and labels in IDX files, named as MNIST's are. */

#include "base/error.h"
#include "runtime/dataset/format.h"
#include "runtime/io/idx.h"

/* Any of its files will do: whoever opens it is told which one is missing. */
static bool idx_is(const char *folder)
{
    static const char *const names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                        "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
    bool any = false;
    for (int i = 0; !any && i < ARRAY_LEN(names); i++) {
        char *path = format_find_file(folder, names[i]);
        any = path;
        free(path);
    }
    return any;
}

/* "images to train on are [5,5,1], those to test on [6,6,1]" */
static bool check_sides(const char *folder, const struct shape *train,
                        const struct tensor *images, struct error *err)
{
    struct shape shape = SHAPE(images->shape.dims[1], images->shape.dims[2], 1);
    char texts[2][SHAPE_TEXT_BYTES];
    return shape_equal(&shape, train) ||
           fail(err, INVALID, "%s: images to train on are %s, those to test on %s", folder,
                shape_text(train, texts[0], sizeof(texts[0])),
                shape_text(&shape, texts[1], sizeof(texts[1])));
}

/* (N,H,W) becomes (N,H,W,1). */
static void add_channel(struct tensor *images)
{
    const int64_t *dims = images->shape.dims;
    struct tensor with;
    tensor_share_as(&with, images, &SHAPE(dims[0], dims[1], dims[2], 1));
    tensor_release(images);
    *images = with;
}

static bool idx_open(struct dataset_opening *opening, struct error *err)
{
    static const char *const sets[] = {"train", "t10k"};
    struct dataset *dataset = opening->dataset;
    struct dataset_part *parts[] = {&dataset->train, &dataset->test};
    struct tensor tensors[2][2] = {{{0}}};
    bool ok = true;
    for (int s = 0; s < 2 && ok; s++)
        ok = idx_read_set(opening->folder, sets[s], &tensors[s][0], &tensors[s][1], err);
    if (ok) {
        const int64_t *dims = tensors[0][0].shape.dims;
        const struct shape shape = SHAPE(dims[1], dims[2], 1);
        format_add_pictures(dataset, &shape);
        ok = check_sides(opening->folder, &shape, &tensors[1][0], err);
    }
    for (int s = 0; s < 2 && ok; s++) {
        add_channel(&tensors[s][0]);
        ok = format_count_classes(&dataset->columns[1], &tensors[s][1], opening->folder, err) &&
             format_memory(dataset, parts[s], tensors[s], opening->folder, err);
    }
    for (int s = 0; s < 2; s++) {
        tensor_release(&tensors[s][0]);
        tensor_release(&tensors[s][1]);
    }
    return ok;
}

const struct dataset_format format_idx = {
    .name = "idx",
    .wanted = "train-images-idx3-ubyte and its like (IDX, as MNIST has; also .gz)",
    .is = idx_is,
    .open = idx_open,
};
