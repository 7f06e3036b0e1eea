/* mode_checkpoint_show.c - the tensors of a checkpoint as a table or as JSON. */

#include <math.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/io/object_names.h"
#include "task/arguments.h"
#include "task/mode_checkpoint.h"

struct options {
    bool no_values, json;
};

/* Everything that is shown of one tensor. */
struct row {
    const struct tensors_item *item;
    const char *object; /* what objects of TensorFlow 2 call it; NULL: there are none */
    struct mode_checkpoint_values values;
    bool has_values;  /* as numbers */
    struct error err; /* code OK: it can be read */
};

struct names {
    struct arena *arena;
    const struct object_name *of;
    int count;
};

struct total {
    int64_t elements, bytes;
    int tensors, damaged, slices;
};

static void read_row(struct tensors *tensors, const struct options *options, struct row *row)
{
    struct tensor strings;
    const struct tensors_item *item = row->item;
    row->err.code = OK;
    if (options->no_values)
        return;
    if (item->dtype == STRING) {
        if (tensors_read(tensors, item, &strings, &row->err))
            tensor_release(&strings);
        return;
    }
    bool ok = mode_checkpoint_look(tensors, item, &row->values, &row->err);
    row->has_values = ok && mode_checkpoint_is_number(item->dtype);
}

static const char *type_text(int dtype, char out[32])
{
    if (dtype_known(dtype))
        return dtype_name(dtype);
    snprintf(out, 32, "type %d", dtype);
    return out;
}

/* --- as a table --- */

static const char *number_text(double value, char out[32])
{
    snprintf(out, 32, "%.6g", value);
    return out;
}

static void print_head(int width, const struct options *options)
{
    printf("%-*s  %-10s %-18s %14s", width, "TENSOR", "TYPE", "SHAPE", "BYTES");
    if (!options->no_values)
        printf("  %12s %12s %12s %10s %6s", "MIN", "MEAN", "MAX", "ZEROS", "NANS");
    printf("\n");
}

static void print_row(const struct row *row, int width)
{
    char shape[SHAPE_TEXT_BYTES], type[32], min[32], mean[32], max[32];
    const struct tensors_item *item = row->item;
    const struct mode_checkpoint_values *v = &row->values;
    printf("%-*s  %-10s %-18s %14lld", width, item->name, type_text(item->dtype, type),
           shape_text(&item->shape, shape, sizeof(shape)), (long long)item->bytes);
    if (row->has_values) {
        int64_t finite = v->count - v->nans - v->infinities;
        bool any = finite > 0;
        printf("  %12s %12s %12s %10lld %6lld", any ? number_text(v->min, min) : "-",
               any ? number_text(v->sum / (double)finite, mean) : "-",
               any ? number_text(v->max, max) : "-", (long long)v->zeros, (long long)v->nans);
        if (v->infinities)
            printf("  %lld infinite", (long long)v->infinities);
    }
    if (item->slices_count)
        printf("  in %d slices", item->slices_count);
    else if (item->shard)
        printf("  in data file %d", item->shard);
    if (row->object)
        printf("  = %s", row->object);
    printf("\n");
    if (row->err.code)
        printf("%-*s  cannot be read: %s: %s\n", width, "", error_code_name(row->err.code),
               row->err.text);
}

/* --- as JSON --- */

static void add_number(struct str *out, const char *name, double value)
{
    if (isfinite(value))
        str_printf(out, ", \"%s\": %.17g", name, value);
    else
        str_printf(out, ", \"%s\": null", name);
}

static void add_row(struct str *out, const struct row *row)
{
    char type[32];
    const struct tensors_item *item = row->item;
    const struct mode_checkpoint_values *v = &row->values;
    str_add(out, "{\"name\": ");
    str_add_json(out, item->name, strlen(item->name));
    str_printf(out, ", \"dtype\": \"%s\", \"shape\": [", type_text(item->dtype, type));
    for (int d = 0; d < item->shape.rank; d++)
        str_printf(out, "%s%lld", d ? ", " : "", (long long)item->shape.dims[d]);
    str_printf(out, "], \"bytes\": %lld, \"slices\": %d", (long long)item->bytes,
               item->slices_count);
    if (!item->slices_count)
        str_printf(out, ", \"shard\": %d", item->shard);
    if (row->object) {
        str_add(out, ", \"object\": ");
        str_add_json(out, row->object, strlen(row->object));
    }
    if (row->has_values) {
        int64_t finite = v->count - v->nans - v->infinities;
        add_number(out, "min", finite ? v->min : NAN);
        add_number(out, "mean", finite ? v->sum / (double)finite : NAN);
        add_number(out, "max", finite ? v->max : NAN);
        str_printf(out, ", \"zeros\": %lld, \"nans\": %lld, \"infinities\": %lld",
                   (long long)v->zeros, (long long)v->nans, (long long)v->infinities);
    }
    if (row->err.code) {
        str_printf(
            out, ", \"error\": {\"code\": \"%s\", \"text\": ", error_code_name(row->err.code));
        str_add_json(out, row->err.text, strlen(row->err.text));
        str_add_char(out, '}');
    }
    str_add_char(out, '}');
}

/* --- the whole --- */

/* The step that a training's checkpoint tells; false when it tells none. */
static bool find_step(struct tensors *tensors, int64_t *step)
{
    static const char *const names[] = {"global_step", "step/.ATTRIBUTES/VARIABLE_VALUE"};
    struct error err;
    for (int i = 0; i < ARRAY_LEN(names); i++) {
        struct tensor value;
        const struct tensors_item *item = tensors_find(tensors, names[i]);
        if (!item || item->dtype != I64 || item->shape.rank ||
            !tensors_read(tensors, item, &value, &err))
            continue;
        *step = *tensor_i64(&value);
        tensor_release(&value);
        return true;
    }
    return false;
}

/* The names that objects have for tensors; none when there are no objects. */
static bool read_names(struct tensors *tensors, struct names *names, struct error *err)
{
    struct tensor graph;
    const struct tensors_item *item = tensors_find(tensors, OBJECT_NAMES_KEY);
    if (!item || item->dtype != STRING || item->shape.rank)
        return true;
    if (!tensors_read(tensors, item, &graph, err))
        return false;
    const struct tensor_string *text = tensor_strings(&graph);
    bool ok =
        object_names_read(text->data, text->size, names->arena, &names->of, &names->count, err);
    tensor_release(&graph);
    return ok;
}

static void count_row(struct total *total, const struct row *row)
{
    total->tensors++;
    total->damaged += row->err.code != OK;
    total->slices += row->item->slices_count;
    total->elements += shape_count(&row->item->shape);
    total->bytes += row->item->bytes;
}

static void show_table(struct tensors *tensors, const struct names *names, const bool *chosen,
                       const struct options *options, struct total *total)
{
    int count, width = 6;
    int64_t step;
    const struct tensors_item *items = tensors_items(tensors, &count);
    for (int i = 0; i < count; i++) {
        int size = (int)strlen(items[i].name);
        if (chosen[i] && size > width)
            width = size < 60 ? size : 60;
    }
    printf("%s: %s", tensors_path(tensors), tensors_format(tensors));
    if (find_step(tensors, &step))
        printf(", step %lld", (long long)step);
    printf("\n");
    print_head(width, options);
    for (int i = 0; i < count; i++) {
        struct row row = {.item = &items[i],
                          .object = object_names_find(names->of, names->count, items[i].name)};
        if (!chosen[i])
            continue;
        read_row(tensors, options, &row);
        print_row(&row, width);
        count_row(total, &row);
    }
    printf("%d tensor%s, %lld element%s, %lld bytes", total->tensors,
           total->tensors == 1 ? "" : "s", (long long)total->elements,
           total->elements == 1 ? "" : "s", (long long)total->bytes);
    if (total->slices)
        printf(", %d slices", total->slices);
    if (total->damaged)
        printf("; %d cannot be read", total->damaged);
    printf("\n");
}

static void show_json(struct tensors *tensors, const struct names *names, const bool *chosen,
                      const struct options *options, struct total *total)
{
    int count;
    int64_t step;
    struct str out = {0};
    const struct tensors_item *items = tensors_items(tensors, &count);
    str_add(&out, "{\"path\": ");
    str_add_json(&out, tensors_path(tensors), strlen(tensors_path(tensors)));
    str_printf(&out, ", \"format\": \"%s\"", tensors_format(tensors));
    if (find_step(tensors, &step))
        str_printf(&out, ", \"step\": %lld", (long long)step);
    str_add(&out, ", \"tensors\": [");
    for (int i = 0; i < count; i++) {
        struct row row = {.item = &items[i],
                          .object = object_names_find(names->of, names->count, items[i].name)};
        if (!chosen[i])
            continue;
        read_row(tensors, options, &row);
        str_add(&out, total->tensors ? ",\n  " : "\n  ");
        add_row(&out, &row);
        count_row(total, &row);
    }
    str_printf(&out, "], \"count\": %d, \"elements\": %lld, \"bytes\": %lld}\n", total->tensors,
               (long long)total->elements, (long long)total->bytes);
    fwrite(out.data, 1, out.size, stdout);
    str_release(&out);
}

static bool show(const char *path, const char *const *tensor_names, int names_count,
                 const struct options *options, int *damaged, struct error *err)
{
    struct tensors *tensors = tensors_open(path, err);
    if (!tensors)
        return false;
    int count;
    struct total total = {0};
    tensors_items(tensors, &count);
    bool *chosen = alloc_array((size_t)count + 1, sizeof(*chosen));
    struct names names = {.arena = arena_new()};
    bool ok = mode_checkpoint_choose(tensors, tensor_names, names_count, chosen, err);
    if (ok && !read_names(tensors, &names, err)) {
        fprintf(stderr, "trainyard: %s\n", err->text);
        total.damaged++; /* the tensors may be whole */
    }
    if (ok)
        (options->json ? show_json : show_table)(tensors, &names, chosen, options, &total);
    *damaged = total.damaged;
    arena_free(names.arena);
    free(chosen);
    tensors_close(tensors);
    return ok;
}

int mode_checkpoint_show(int argc, char **argv)
{
    struct options options = {0};
    const char *words[MODE_CHECKPOINT_NAMES + 2], *tensor = NULL;
    int count, damaged = 0;
    const struct argument rows[] = {{.name = "--tensor", .text = &tensor},
                                    {.name = "--no-values", .flag = &options.no_values},
                                    {.name = "--json", .flag = &options.json}};
    struct error err;
    bool ok = arguments_read(argc, argv, rows, ARRAY_LEN(rows), words,
                             MODE_CHECKPOINT_NAMES + 1, &count, &err);
    if (ok && !count)
        ok = fail(&err, INVALID,
                  "which checkpoint?  Its prefix, a folder or a file (--help tells more)");
    if (ok && tensor)
        words[count++] = tensor;
    if (!ok || !show(words[0], words + 1, count - 1, &options, &damaged, &err))
        return mode_checkpoint_fail(&err);
    return damaged ? 2 : 0;
}
