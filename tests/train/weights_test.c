/* weights_test.c - which weight of a file goes where: by names, by places, and what does not
 * fit. */

#include "base/arena.h"
#include "base/str.h"
#include "runtime/io/file.h"
#include "runtime/io/hdf5.h"
#include "runtime/model/model.h"
#include "runtime/spec/spec.h"
#include "runtime/train/weights.h"
#include "tests/unit/folder.h"

static const char layers[] =
    "{\"model\": {\"layers\": [{\"layer\": \"Dense\", \"units\": 3, \"name\": \"a\"}, "
    "{\"layer\": \"Bidirectional\", \"name\": \"b\", \"wrapped\": {\"layer\": \"GRU\", "
    "\"units\": 2}}, "
    "{\"layer\": \"Dense\", \"units\": 2, \"name\": \"c\", \"use_bias\": false}]}, "
    "\"data\": {\"dataset\": \"x\"}}";

static struct model_variable variable(const char *name, struct shape shape)
{
    return (struct model_variable){
        .name = name, .dtype = F32, .shape = shape, .trainable = true};
}

/* As the model of `layers` has them, with what an optimizer keeps beside one. */
static int variables(struct model_variable *out)
{
    int n = 0;
    out[n++] =
        (struct model_variable){.name = "global_step", .dtype = I64, .shape = SHAPE_SCALAR};
    out[n++] = variable("a/kernel", SHAPE(4, 3));
    out[n++] = variable("a/bias", SHAPE(3));
    out[n++] = variable("b/forward/kernel", SHAPE(3, 6));
    out[n++] = variable("b/backward/kernel", SHAPE(3, 6));
    out[n++] = variable("c/kernel", SHAPE(4, 2));
    out[n++] = variable("a/kernel/Adam", SHAPE(4, 3));
    return n;
}

struct wanted {
    const char *path, *name; /* of the dataset; of its layer, NULL: none is said */
    struct shape shape;
    enum dtype dtype;
};

/* A file of those, the first element of each is its number. */
static const char *file(const struct wanted *wanted, int count)
{
    struct error err;
    struct hdf5_item items[16] = {0};
    struct str bytes = {0};
    char attribute[] = "name", vars[16][64];
    int n = 0;
    for (int i = 0; i < count; i++) {
        items[n].path = (char *)wanted[i].path;
        CHECK_OK(tensor_init(&items[n].value, wanted[i].dtype, &wanted[i].shape, &err), &err);
        for (int64_t k = 0; k < items[n].value.count; k++)
            tensor_set_number(&items[n].value, k, i + 1);
        n++;
        if (!wanted[i].name)
            continue;
        snprintf(vars[i], sizeof(vars[i]), "%.*s/vars",
                 (int)strcspn(wanted[i].path + 7, "/") + 7, wanted[i].path);
        items[n] = (struct hdf5_item){.path = vars[i], .group = true};
        n++;
        items[n] = (struct hdf5_item){.path = vars[i], .attribute = attribute};
        CHECK_OK(
            tensor_init_string(&items[n].value, wanted[i].name, strlen(wanted[i].name), &err),
            &err);
        n++;
    }
    for (int i = 0; i < n; i++) { /* groups first, as they are made on the way otherwise */
        for (int k = i + 1; k < n && !items[i].group; k++) {
            if (items[k].group) {
                struct hdf5_item swap = items[i];
                items[i] = items[k];
                items[k] = swap;
            }
        }
    }
    CHECK_OK(hdf5_write(items, n, &bytes, &err), &err);
    const char *path = folder_path("w.weights.h5");
    CHECK_OK(file_write(path, bytes.data, bytes.size, &err), &err);
    for (int i = 0; i < n; i++)
        tensor_release(&items[i].value);
    str_release(&bytes);
    return path;
}

/* Which number each place gets: "1 2 3 4 5"; "-" none, "!" one that does not fit. */
static void check(const char *path, const char *expected, const char *told)
{
    struct error err;
    struct arena *arena = arena_new();
    struct model_variable all[8];
    int count = variables(all);
    const struct spec *spec = spec_parse(arena, layers, strlen(layers), &err);
    CHECK_OK(spec, &err);
    struct weights *weights = weights_open(path, &err);
    CHECK_OK(weights, &err);
    const struct weights_place *places = weights_places(spec, all, count, arena, &count);
    CHECK_INT(count, 5);
    const struct weights_match *matches = weights_match(weights, places, count, arena);
    struct str found = {0}, text = {0};
    for (int i = 0; i < count; i++) {
        struct tensor value;
        if (!matches[i].fits) {
            str_add(&found, matches[i].entry ? "! " : "- ");
            weights_tell(&matches[i], &text);
            continue;
        }
        CHECK_OK(weights_value(&matches[i], &value, &err), &err);
        CHECK_INT(value.dtype, F32);
        str_printf(&found, "%g ", tensor_number(&value, value.count - 1));
        tensor_release(&value);
    }
    CHECK_TEXT(str_text(&found), expected);
    if (!strstr(str_text(&text), told))
        CHECK_STOP("'%s' is not in: %s", told, str_text(&text));
    str_release(&found);
    str_release(&text);
    weights_close(weights);
    arena_free(arena);
}

TEST(by_names_whatever_the_places)
{
    const struct wanted all[] = {
        {"layers/dense_1/vars/0", "a", SHAPE(4, 3), F32},
        {"layers/dense_1/vars/1", NULL, SHAPE(3), F16},
        {"layers/bidirectional/forward_layer/cell/vars/0", "b", SHAPE(3, 6), F64},
        {"layers/bidirectional/backward_layer/cell/vars/0", NULL, SHAPE(3, 6), F32},
        {"layers/dense/vars/0", "c", SHAPE(4, 2), F32}};
    check(file(all, 5), "1 2 3 4 5 ", "");
}

/* Another session of Keras counted on: the places are the same. */
TEST(by_places_whatever_the_names)
{
    const struct wanted all[] = {
        {"layers/dense/vars/0", "c", SHAPE(4, 3), F32},
        {"layers/dense/vars/1", NULL, SHAPE(3), F32},
        {"layers/bidirectional/forward_layer/cell/vars/0", NULL, SHAPE(3, 6), F32},
        {"layers/bidirectional/backward_layer/cell/vars/0", NULL, SHAPE(3, 6), F32},
        {"layers/dense_1/vars/0", "d", SHAPE(4, 2), F32}};
    check(file(all, 5), "1 2 3 4 5 ", "");
}

TEST(what_does_not_fit_is_told)
{
    const struct wanted all[] = {{"layers/dense/vars/0", "a", SHAPE(4, 3), F32},
                                 {"layers/dense/vars/1", NULL, SHAPE(3), I32},
                                 {"layers/dense_1/vars/0", "c", SHAPE(4, 7), F32}};
    check(file(all, 3), "1 ! - - ! ",
          "\"c/kernel\" is float [4,7] there, float [4,2] in the model");
}

/* What it trains and averages, not what counts or is kept for another; by names alone, so
 * nothing of a file of layers fits. */
TEST(of_a_graph)
{
    static const char graph[] =
        "{\"model\": {\"graph\": \"AAAA\"}, \"data\": {\"dataset\": \"x\"}}";
    const struct wanted all[] = {{"layers/dense/vars/0", "w", SHAPE(4), F32}};
    struct model_variable made[] = {
        variable("w", SHAPE(4)),      variable("scale", SHAPE_SCALAR),
        variable("w/Adam", SHAPE(4)), variable("opt/w/Adam_1", SHAPE(4)),
        variable("mean", SHAPE(4)),   variable("beta1", SHAPE_SCALAR),
        variable("ww/w_x", SHAPE(4)), variable("step", SHAPE_SCALAR)};
    struct arena *arena = arena_new();
    struct error err;
    struct str names = {0};
    int count;
    for (int i = 2; i < ARRAY_LEN(made); i++)
        made[i].trainable = false;
    made[7].dtype = I64;
    const struct spec *spec = spec_parse(arena, graph, strlen(graph), &err);
    CHECK_OK(spec, &err);
    const struct weights_place *places =
        weights_places(spec, made, ARRAY_LEN(made), arena, &count);
    struct weights *weights = weights_open(file(all, 1), &err);
    CHECK_OK(weights, &err);
    const struct weights_match *matches = weights_match(weights, places, count, arena);
    for (int i = 0; i < count; i++) {
        str_printf(&names, "%s ", places[i].variable->name);
        CHECK(!matches[i].entry);
    }
    CHECK(!strcmp(str_text(&names), "w scale mean ww/w_x "));
    str_release(&names);
    weights_close(weights);
    arena_free(arena);
}

TEST(files_that_are_none_are_refused)
{
    struct error err;
    const struct wanted other = {"somewhere/else", NULL, SHAPE(1), F32};
    CHECK_FAILS(weights_open(folder_path("none.h5"), &err), &err, NOT_FOUND);
    CHECK_FAILS(weights_open(folder_path("none.keras"), &err), &err, NOT_FOUND);
    CHECK_FAILS(weights_open(folder_path("none"), &err), &err, NOT_FOUND);
    CHECK_FAILS(weights_open(file(&other, 1), &err), &err, INVALID);
    CHECK(strstr(err.text, "no weights as Keras writes them"));
    CHECK_OK(file_write(folder_path("x.keras"), "no zip", 6, &err), &err);
    CHECK_FAILS(weights_open(folder_path("x.keras"), &err), &err, DATA_LOSS);
}
