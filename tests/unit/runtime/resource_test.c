/* resource_test.c - the table of state, and the two styles of variables. */

#include "runtime/resource.h"
#include "tests/unit/test.h"

static struct error err;

static struct tensor scalar(float value)
{
    struct tensor tensor;
    CHECK_OK(tensor_init_scalar(&tensor, F32, value, &err), &err);
    return tensor;
}

static struct variable *get(struct resources *resources, const char *container,
                            const char *name)
{
    return resources_variable(resources, container, name, F32, &SHAPE_UNKNOWN, &err);
}

/* The same, borrowed from the table. */
static struct variable *make(struct resources *resources, const char *container,
                             const char *name)
{
    struct variable *variable = get(resources, container, name);
    CHECK(variable);
    resource_unref(&variable->resource);
    return variable;
}

TEST(variables_are_found_by_container_and_name)
{
    struct resources *resources = resources_new("worker");
    struct variable *v = make(resources, "", "v");
    CHECK(v);
    CHECK(make(resources, "worker", "v") == v);
    CHECK(make(resources, "other", "v") != v);
    CHECK(resources_find(resources, "", "variable", "v") == &v->resource);
    CHECK(!resources_find(resources, "", "queue", "v"));
    CHECK_FAILS(resources_variable(resources, "", "v", I32, &SHAPE_UNKNOWN, &err), &err,
                INVALID);
    struct variable *w = resources_variable(resources, "", "w", F32, &SHAPE(2, 3), &err);
    CHECK(w);
    CHECK(resources_variable(resources, "", "w", F32, &SHAPE(2, -1), &err) == w);
    CHECK_INT(w->resource.references, 3);
    resource_unref(&w->resource);
    resource_unref(&w->resource);
    CHECK_FAILS(resources_variable(resources, "", "w", F32, &SHAPE(3), &err), &err, INVALID);
    resources_free(resources);
}

/* TensorFlow makes a container with the first resource in it, and a variable with its value. */
TEST(what_is_missing_is_said_as_tensorflow_says_it)
{
    char text[512];
    struct resources *resources = resources_new("localhost");
    struct variable *v = make(resources, "", "v");
    make(resources, "localhos", "other")->value = scalar(1);
    resources_missing(resources, "", "v", RESOURCE_VARIABLE_TYPE, text, sizeof(text));
    CHECK_TEXT(text,
               "Container localhost does not exist. (Could not find resource: localhost/v)");
    v->value = scalar(1);
    resources_missing(resources, "localhost", "w", RESOURCE_VARIABLE_TYPE, text, sizeof(text));
    CHECK_TEXT(text, "Resource localhost/w/N10tensorflow3VarE does not exist.");
    resources_free(resources);
}

/* Who holds a removed resource is told to look again; the memory stays until it lets go. */
TEST(a_removed_resource_lives_as_long_as_it_is_held)
{
    struct resources *resources = resources_new("localhost");
    struct variable *v = make(resources, "", "v");
    resource_ref(&v->resource);
    CHECK(resources_remove(resources, "", "variable", "v"));
    CHECK(!resources_remove(resources, "", "variable", "v"));
    CHECK_INT(v->resource.removed, 1);
    CHECK(make(resources, "", "v") != v);
    CHECK_TEXT(v->name, "v");
    resource_unref(&v->resource);

    struct variable *kept = make(resources, "kept", "v");
    resources_clear(resources, "");
    CHECK(!resources_find(resources, "", "variable", "v"));
    CHECK(resources_find(resources, "kept", "variable", "v") == &kept->resource);
    resources_free(resources);
}

TEST(a_name_is_taken_once)
{
    struct resources *resources = resources_new("localhost");
    struct variable *v = variable_new("v", F32, &SHAPE_SCALAR);
    CHECK_OK(resources_add(resources, "", "v", &v->resource, &err), &err);
    struct variable *again = variable_new("v", F32, &SHAPE_SCALAR);
    CHECK_FAILS(resources_add(resources, "", "v", &again->resource, &err), &err, EXISTS);
    resource_unref(&again->resource);
    resources_free(resources);
}

static void count(struct resource *resource, void *arg)
{
    CHECK_TEXT(resource->kind, "variable");
    ++*(int *)arg;
}

TEST(all_of_a_kind_are_visited)
{
    struct resources *resources = resources_new("localhost");
    int visited = 0;
    for (int i = 0; i < 5; i++)
        CHECK(make(resources, i % 2 ? "a" : "b", (const char[]){(char)('a' + i), 0}));
    resources_each(resources, "variable", count, &visited);
    resources_each(resources, "queue", count, &visited);
    CHECK_INT(visited, 5);
    resources_free(resources);
}

/* The whole would stay for as long as the variable has its part. */
TEST(a_variable_keeps_no_more_than_its_value)
{
    static const struct {
        int64_t first, count;
        bool shared;
    } parts[] = {{48, 16, false}, {32, 32, false}, {0, 48, true}, {0, 64, true}};
    struct variable *v = variable_new("v", F32, &SHAPE_UNKNOWN);
    for (int i = 0; i < ARRAY_LEN(parts); i++) {
        struct tensor whole, part;
        const struct shape shape = {.rank = 1, .dims = {64}};
        CHECK_OK(tensor_init(&whole, F32, &shape, &err), &err);
        for (int k = 0; k < 64; k++)
            tensor_f32_mut(&whole)[k] = (float)k;
        tensor_share(&part, &whole);
        part.data = tensor_f32_mut(&whole) + parts[i].first;
        part.count = part.shape.dims[0] = parts[i].count;
        CHECK_OK(variable_assign(v, &part, &err), &err);
        CHECK((v->value.buffer == whole.buffer) == parts[i].shared);
        CHECK_INT(v->value.count, parts[i].count);
        CHECK(tensor_f32(&v->value)[1] == (float)(parts[i].first + 1));
        tensor_release(&part);
        tensor_release(&whole);
    }
    resource_unref(&v->resource);
}

TEST(a_snapshot_stays_when_the_variable_is_written)
{
    struct variable *v = variable_new("v", F32, &SHAPE_SCALAR);
    CHECK_FAILS(variable_make_exclusive(v, &err), &err, PRECONDITION);
    CHECK(strstr(err.text, "uninitialized value v"));
    struct tensor one = scalar(1), snapshot;
    CHECK_OK(variable_assign(v, &one, &err), &err);
    CHECK(v->value.data == one.data);
    tensor_release(&one);

    const void *before = v->value.data;
    CHECK_OK(variable_make_exclusive(v, &err), &err);
    CHECK(v->value.data == before); /* nobody else: no copy */
    tensor_share(&snapshot, &v->value);
    CHECK_OK(variable_make_exclusive(v, &err), &err);
    tensor_f32_mut(&v->value)[0] = 2;
    CHECK(tensor_f32(&snapshot)[0] == 1);
    tensor_release(&snapshot);
    resource_unref(&v->resource);
}

TEST(by_reference_updates_are_seen_and_givers_are_safe)
{
    struct variable *v = variable_new("v", F32, &SHAPE_SCALAR);
    v->by_ref = true;
    struct tensor one = scalar(1), two = scalar(2), reader;
    CHECK_OK(variable_assign(v, &one, &err), &err);
    CHECK(v->value.data != one.data);
    tensor_share(&reader, &v->value);
    CHECK_OK(variable_make_exclusive(v, &err), &err);
    tensor_f32_mut(&v->value)[0] = 5;
    CHECK(tensor_f32(&reader)[0] == 5);
    CHECK_OK(variable_assign(v, &two, &err), &err);
    CHECK(tensor_f32(&reader)[0] == 2);
    CHECK(tensor_f32(&one)[0] == 1);

    /* Another shape is another buffer; the reader keeps the old one. */
    struct tensor wide;
    CHECK_OK(tensor_init_copy(&wide, F32, &SHAPE(2), (const float[]){7, 8}, &err), &err);
    CHECK_OK(variable_assign(v, &wide, &err), &err);
    CHECK_INT(v->value.count, 2);
    CHECK(tensor_f32(&reader)[0] == 2);
    tensor_release(&reader);
    tensor_release(&one);
    tensor_release(&two);
    tensor_release(&wide);
    resource_unref(&v->resource);
}
