/* plan_model.c - the dataset of a spec, and whether the model fits it. */

#include <dirent.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/dataset/feeds.h"
#include "runtime/spec/spec.h"
#include "server/plan.h"
#include "server/plan_model.h"
#include "server/request.h"
#include "server/summaries.h"

#define PLAN_RANK_MAX 8 /* dimensions of one example */

/* Names the datasets that there are, for one who asked for another. */
static void add_known(const char *folder, struct str *text)
{
    DIR *dir = opendir(folder);
    int count = 0;
    struct dirent *entry;
    while (dir && (entry = readdir(dir)) && count < 20)
        if (entry->d_name[0] != '.' && spec_is_name(entry->d_name))
            str_printf(text, "%s%s", count++ ? ", " : "; there are: ", entry->d_name);
    if (dir)
        closedir(dir);
    if (!count)
        str_add(text, "; there is none yet");
}

/* A column as dataset.json tells it; false when it makes no sense. */
static bool read_column(const json_t *json, struct arena *arena, struct dataset_column *out)
{
    const char *name, *role, *dtype;
    json_t *shape;
    json_int_t classes;
    if (json_unpack((json_t *)json, "{s:s, s:s, s:s, s:o, s:I}", "name", &name, "role", &role,
                    "dtype", &dtype, "shape", &shape, "classes", &classes) < 0 ||
        json_array_size(shape) > PLAN_RANK_MAX)
        return false;
    *out = (struct dataset_column){.name = arena_text(arena, name),
                                   .role = !strcmp(role, "feature")  ? DATASET_FEATURE
                                           : !strcmp(role, "target") ? DATASET_TARGET
                                                                     : DATASET_UNUSED,
                                   .stored = dtype_find(dtype),
                                   .dtype = dtype_find(dtype),
                                   .classes = classes};
    for (size_t i = 0; i < json_array_size(shape); i++)
        out->shape.dims[out->shape.rank++] = json_integer_value(json_array_get(shape, i));
    return out->dtype != DTYPE_NONE && shape_is_full(&out->shape);
}

/* Whether the spec reads the data otherwise than dataset.json, made without it, tells. */
static bool reads_otherwise(const struct spec_data *data, const char *format)
{
    bool table = !strcmp(format, "csv") || !strcmp(format, "tfrecord");
    return data->columns_count || data->format || data->weight || data->text.sequence_length ||
           data->text.skip_gram || data->image_size[0] || data->augment_count ||
           (table && (data->target || data->features_count));
}

/*
 * Looks whether the layers fit the examples and each other.  What dataset.json does not tell,
 * or the spec changes, the task finds out.
 */
static bool check_model(struct request *req, const struct spec *spec, const json_t *dataset,
                        struct plan *plan, struct error *err)
{
    const char *format;
    json_t *list = json_object_get(dataset, "columns");
    size_t count = json_array_size(list);
    struct dataset_column *columns = arena_array(req->arena, count + 1, sizeof(*columns));
    struct feeds feeds;
    if (!count || json_unpack((json_t *)dataset, "{s:s}", "format", &format) < 0 ||
        reads_otherwise(&spec->data, format))
        return true;
    for (size_t i = 0; i < count; i++) {
        if (!read_column(json_array_get(list, i), req->arena, &columns[i]))
            return true;
    }
    if (!feeds_choose(columns, (int)count, &spec->data, req->arena, &feeds, err))
        return false;
    plan->has_model = true;
    return model_summary(spec, &feeds.data, req->arena, &plan->model, err);
}

/* Whether `trainyard dataset add NAME` makes or downloads it; others come from a folder. */
static bool comes_by_name(const char *name)
{
    static const char *const names[] = {"mnist",  "fashion-mnist", "cifar10", "digits",
                                        "linear", "census",        "blobs"};
    for (int i = 0; i < ARRAY_LEN(names); i++) {
        if (!strcmp(names[i], name))
            return true;
    }
    return false;
}

/* Which model on which data: all of the spec but who asks, in what name and for whose turn. */
static void model_key(const struct spec *spec, const struct stat *dataset,
                      uint8_t key[SUMMARIES_KEY_BYTES])
{
    struct spec bare = *spec;
    bare.name = bare.project = bare.queue = bare.notes = "";
    bare.tags_count = bare.after_count = bare.priority = 0;
    struct str text = {0};
    spec_to_json(&bare, &text);
    str_printf(&text, "%llu %lld %lld %lld", (unsigned long long)dataset->st_ino,
               (long long)dataset->st_size, (long long)dataset->st_mtim.tv_sec,
               (long long)dataset->st_mtim.tv_nsec);
    static_assert(SUMMARIES_KEY_BYTES == crypto_hash_sha256_BYTES, "the key is such a hash");
    crypto_hash_sha256(key, (const uint8_t *)text.data, text.size);
    str_release(&text);
}

static bool fail_unknown(const char *name, const char *folder, const char *datasets,
                         struct error *err)
{
    struct str known = {0};
    add_known(datasets, &known);
    error_at(err, "/data/dataset", INVALID,
             "dataset '%s' is not on this server%s. Add it with: trainyard dataset add %s%s "
             "--dir %s",
             name, str_text(&known), name, comes_by_name(name) ? "" : " --from FOLDER", folder);
    str_release(&known);
    return false;
}

bool plan_model(struct request *req, const struct spec *spec, struct plan *plan,
                struct error *err)
{
    const char *name = spec->data.dataset;
    if (!name || !*name)
        return true;
    uint8_t key[SUMMARIES_KEY_BYTES];
    struct stat info;
    const char *folder = arena_printf(req->arena, "%s/datasets", req->services->folder);
    const char *path = arena_printf(req->arena, "%s/%s/dataset.json", folder, name);
    bool there = stat(path, &info) == 0;
    if (there)
        model_key(spec, &info, key);
    if (there && summaries_find(req->services->summaries, key, req->arena, &plan->model)) {
        plan->has_model = true;
        return true;
    }
    json_t *dataset = there ? json_load_file(path, 0, NULL) : NULL;
    if (!dataset)
        return fail_unknown(name, req->services->folder, folder, err);
    bool ok = check_model(req, spec, dataset, plan, err);
    json_decref(dataset);
    if (ok && plan->has_model)
        summaries_keep(req->services->summaries, key, &plan->model);
    return ok;
}
