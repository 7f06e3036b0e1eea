/*
 * spec_block.h - blocks of layers: written once in a model, used many times.
 *
 *   "blocks": {"residual": {"arguments": {"filters": null, "strides": 1}, "layers": [
 *       {"layer": "Conv2D", "name": "conv", "filters": "$filters", "strides": "$strides"},
 *       {"layer": "Add", "inputs": ["conv", "input"]}]}},
 *   "layers": [{"block": "residual", "name": "stage1", "repeat": 3, "filters": 16}]
 *
 * A use of a block stands for its layers, with "$filters" replaced by what the use says, else
 * by the block's own value (null: the use must say).  Inside, "input" is what the use takes,
 * and layers are called by their names there; in the whole they are called "stage1_1.conv".
 * The block gives what its last layer gives, under the name of the use.  Blocks may use blocks.
 */
#pragma once

#include "runtime/spec/spec.h"
#include "runtime/spec/spec_read.h"

#define SPEC_LAYERS_MAX 1000
#define SPEC_BLOCK_DEPTH 4 /* blocks in blocks */

/* One use of a block; of several in a row each is one. */
struct spec_use {
    const char *name;       /* in the whole */
    struct spec_use *outer; /* the block whose layer this use is; NULL: the model */
    const json_t *json;     /* what it says */
    const char *pointer;
    int number;      /* in a row; all but the first take what the one before gives */
    int first, last; /* its layers */
    struct spec_input input;
    bool has_input; /* not: it takes what the data gives */
};

struct spec_entry { /* a layer to be parsed */
    json_t *json;
    const char *pointer;
    struct spec_use *use; /* NULL: of the model itself */
};

struct spec_entries {
    struct spec_entry *list;
    int count;
    struct spec_use *
        *uses; /* in the order of their first layers, outer ones before inner ones */
    int uses_count;
    json_t *filled; /* owns the layers that were made */
};

/*
 * The layers of the model, blocks replaced by theirs.  All but `filled` lives in the arena of
 * `model`; spec_block_release() also after a failure.
 */
bool spec_block_expand(const struct spec_object *model, struct spec_entries *out) CHECKED;
void spec_block_release(struct spec_entries *entries);

/* The last use of that name whose layers are all before `index`; NULL: none. */
const struct spec_use *spec_block_find(const struct spec_entries *entries, int index,
                                       const char *name);
