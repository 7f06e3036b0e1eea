/* export_safetensors.c - the weights of a trained model as a safetensors file. */

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/io/output.h"
#include "runtime/io/safetensors.h"
#include "runtime/spec/spec.h"
#include "runtime/tensor.h"
#include "runtime/train/trained.h"
#include "task/export.h"

static const struct tensor *value_of(const struct trained *trained, const char *name)
{
    for (int i = 0; i < trained->model.variables_count; i++) {
        if (!strcmp(trained->model.variables[i].name, name))
            return &trained->values[i];
    }
    return NULL;
}

static bool write_items(const struct trained *trained, const struct safetensors_item *items,
                        int count, const char *out, struct error *err)
{
    char *step = alloc_printf("%lld", (long long)trained->step);
    const struct safetensors_note notes[] = {
        {"made_by", "trainyard"}, {"name", trained->spec->name}, {"step", step}};
    struct str header = {0};
    safetensors_add_header(&header, items, count, notes, ARRAY_LEN(notes));
    struct output *output = output_open(out, err);
    bool ok = output && output_write(output, header.data, header.size, err);
    for (int i = 0; ok && i < count; i++)
        ok = output_write(output, value_of(trained, items[i].name)->data,
                          (size_t)items[i].bytes, err);
    str_release(&header);
    free(step);
    if (ok)
        return output_finish(output, err);
    output_discard(output);
    return false;
}

static bool write_weights(const struct trained *trained, const char *out, struct str *notes,
                          struct error *err)
{
    const struct model *model = &trained->model;
    int count = 0;
    struct safetensors_item *items =
        alloc_array((size_t)model->variables_count + 1, sizeof(*items));
    for (int i = 0; i < model->variables_count; i++) {
        if (trained->values[i].dtype)
            items[count++] = (struct safetensors_item){.name = model->variables[i].name,
                                                       .dtype = trained->values[i].dtype,
                                                       .shape = trained->values[i].shape};
    }
    bool ok =
        safetensors_layout(items, count, err) && write_items(trained, items, count, out, err);
    if (ok)
        str_printf(notes, "%d weights, those of the optimizer left out\n", count);
    free(items);
    return ok;
}

const struct export_format export_safetensors = {
    .name = "safetensors",
    .ending = ".safetensors",
    .summary = "the weights, for whatever reads safetensors",
    .write = write_weights,
};
