/* feeds.c - features and target of a model, from the columns of its data. */

#include "runtime/dataset/feeds.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/str.h"
#include "runtime/spec/spec.h"

#define FEEDS_NAMES_TOLD 50 /* columns named in an error */

static bool refuse_name(const struct dataset_column *columns, int count, const char *name,
                        const char *pointer, struct error *err)
{
    struct str all = {0};
    for (int i = 0; i < count && i < FEEDS_NAMES_TOLD; i++)
        str_printf(&all, "%s\"%s\"", i ? ", " : "", columns[i].name);
    if (count > FEEDS_NAMES_TOLD)
        str_printf(&all, " and %d more", count - FEEDS_NAMES_TOLD);
    if (name)
        error_at(err, pointer, INVALID, "the data has no column \"%.60s\", allowed: %s", name,
                 str_text(&all));
    else
        error_at(err, pointer, INVALID,
                 "the data does not say what is to be predicted; name one of its columns: %s",
                 str_text(&all));
    str_release(&all);
    return false;
}

static int find(const struct dataset_column *columns, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (!strcmp(columns[i].name, name))
            return i;
    }
    return -1;
}

static bool find_target(const struct dataset_column *columns, int count,
                        const struct spec_data *spec, int *target, struct error *err)
{
    *target = -1;
    if (spec->target)
        *target = find(columns, count, spec->target);
    for (int i = 0; i < count && *target < 0 && !spec->target; i++) {
        if (columns[i].role == DATASET_TARGET)
            *target = i;
    }
    return *target >= 0 || refuse_name(columns, count, spec->target, "/data/target", err);
}

static bool find_weight(const struct dataset_column *columns, int count, const char *name,
                        int *weight, struct error *err)
{
    *weight = find(columns, count, name);
    if (*weight < 0)
        return refuse_name(columns, count, name, "/data/weight", err);
    return columns[*weight].dtype == F32 ||
           error_at(err, "/data/weight", INVALID, "the column \"%.60s\" holds no numbers",
                    name);
}

/* Columns that are features; returns how many, -1 after setting `err`. */
static int find_features(const struct dataset_column *columns, int count,
                         const struct spec_data *spec, int target, int *features,
                         struct error *err)
{
    int found = 0;
    for (int i = 0; i < spec->features_count; i++) {
        char pointer[40];
        snprintf(pointer, sizeof(pointer), "/data/features/%d", i);
        int column = find(columns, count, spec->features[i]);
        if (column < 0) {
            refuse_name(columns, count, spec->features[i], pointer, err);
            return -1;
        }
        features[found++] = column;
    }
    if (found)
        return found;
    for (int i = 0; i < count; i++) {
        if (columns[i].role == DATASET_FEATURE && i != target)
            features[found++] = i;
    }
    if (!found && columns[target].role == DATASET_FEATURE)
        features[found++] = target;
    if (!found)
        error_at(err, "/data/features", INVALID, "the data has no column to predict from");
    return found ? found : -1;
}

/* Whether the graph of a model uses `name` itself. */
static bool is_taken(const char *name)
{
    static const char *const taken[] = {MODEL_LOSS,   MODEL_TRAIN, MODEL_INIT,    MODEL_STEP,
                                        "eval",       "metrics",   "predictions", "gradients",
                                        "checkpoint", NULL};
    for (int i = 0; taken[i]; i++) {
        if (!strcmp(taken[i], name))
            return true;
    }
    return false;
}

/* The name of a column as that of a node: letters, digits and "_.-"; unlike those before. */
static const char *node_name(struct arena *arena, const char *column,
                             const struct model_feature *before, int before_count)
{
    char *name = arena_printf(arena, "%s", *column ? column : "_");
    for (char *c = name; *c; c++) {
        bool letter =
            (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
        if (!letter && (c == name || !strchr("_.-", *c)))
            *c = '_';
    }
    if (*name == '_')
        name = arena_printf(arena, "column%s", name);
    bool again = is_taken(name);
    for (int i = 0; i < before_count || again; i++) {
        if (!again && strcmp(before[i].name, name) != 0)
            continue;
        name = arena_printf(arena, "%s_", name);
        again = false;
        i = -1;
    }
    return name;
}

bool feeds_choose(const struct dataset_column *columns, int count, const struct spec_data *spec,
                  struct arena *arena, struct feeds *out, struct error *err)
{
    int target;
    int *chosen =
        arena_array(arena, (size_t)(count + spec->features_count) + 2, sizeof(*chosen));
    if (!find_target(columns, count, spec, &target, err))
        return false;
    int features = find_features(columns, count, spec, target, chosen, err);
    if (features < 0)
        return false;
    chosen[features] = target;
    struct model_feature *faces = arena_array(arena, (size_t)features + 2, sizeof(*faces));
    bool is_both = false;
    int weight = -1;
    if (spec->weight && !find_weight(columns, count, spec->weight, &weight, err))
        return false;
    for (int i = 0; i <= features; i++) {
        const struct dataset_column *column = &columns[chosen[i]];
        const char *name = i == features && is_both ? "target" : column->name;
        is_both |= chosen[i] == target;
        faces[i] = (struct model_feature){node_name(arena, name, faces, i), column->dtype,
                                          column->shape};
    }
    *out = (struct feeds){.data = {.features = faces,
                                   .features_count = features,
                                   .target = faces[features],
                                   .classes = columns[target].classes},
                          .columns = chosen,
                          .count = features + 1};
    if (weight >= 0) {
        const char *name = node_name(arena, columns[weight].name, faces, features + 1);
        out->data.weight = (struct model_feature){name, F32, columns[weight].shape};
        chosen[out->count++] = weight;
    }
    return true;
}

const struct model_feature *feeds_face(const struct feeds *feeds, int index)
{
    const struct model_data *data = &feeds->data;
    assert(index >= 0 && index < feeds->count);
    if (index < data->features_count)
        return &data->features[index];
    return index == data->features_count ? &data->target : &data->weight;
}
