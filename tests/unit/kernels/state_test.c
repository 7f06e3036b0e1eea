/* state_test.c - corners of stateful kernels, as TensorFlow has them. */

#include "tests/unit/folder.h"
#include "tests/unit/kernels/world.h"

static struct edge ints(struct world *world, enum dtype dtype, const struct shape *shape,
                        const int64_t *values)
{
    struct error err;
    struct tensor t;
    CHECK_OK(tensor_init(&t, dtype, shape, &err), &err);
    for (int64_t i = 0; i < t.count; i++)
        tensor_set_number(&t, i, (double)values[i]);
    struct edge edge = builder_const(&world->b, "Const", &t);
    tensor_release(&t);
    return edge;
}

static struct edge variable(struct world *world, const char *op, const char *node,
                            const char *name, const struct shape *shape)
{
    return builder_add(&world->b, op, node, NO_INPUTS,
                       ATTRS(attr_type("dtype", I64), attr_shape("shape", shape),
                             attr_string("shared_name", name)));
}

/* The only element, or the first, of what is fetched. */
static int64_t first(struct world *world, const char *fetch)
{
    struct error err;
    struct tensor out = {0};
    CHECK_OK(world_run(world, fetch, &out, &err), &err);
    int64_t value = (int64_t)tensor_number(&out, 0);
    tensor_release(&out);
    return value;
}

TEST(variables_by_reference_and_behind_handles_do_not_share_names)
{
    struct world *world = world_new(NULL);
    struct error err;
    struct edge h = variable(world, "VarHandleOp", "h", "v", &SHAPE(1));
    struct edge r = variable(world, "VariableV2", "r", "v", &SHAPE(1));
    builder_add(&world->b, "AssignVariableOp", "set_h",
                INPUTS(h, ints(world, I64, &SHAPE(1), (const int64_t[]){1})), NO_ATTRS);
    builder_add(&world->b, "Assign", "set_r",
                INPUTS(r, ints(world, I64, &SHAPE(1), (const int64_t[]){2})), NO_ATTRS);
    builder_add(&world->b, "ReadVariableOp", "read_h", INPUTS(h),
                ATTRS(attr_type("dtype", I64)));
    world_begin(world);
    CHECK_OK(world_run(world, "set_h", NULL, &err), &err);
    CHECK_OK(world_run(world, "set_r", NULL, &err), &err);
    CHECK_INT(first(world, "read_h:0"), 1);
    world_free(world);
}

/* A handle says nothing that holds: the assignment decides. */
TEST(handles_of_other_shapes_name_the_same_variable)
{
    struct world *world = world_new(NULL);
    struct error err;
    struct edge a = variable(world, "VarHandleOp", "a", "v", &SHAPE(1));
    struct edge b = variable(world, "VarHandleOp", "b", "v", &SHAPE(2, 2));
    builder_add(&world->b, "AssignVariableOp", "set",
                INPUTS(a, ints(world, I64, &SHAPE(3), (const int64_t[]){7, 8, 9})),
                ATTRS(attr_bool("validate_shape", true)));
    builder_add(&world->b, "ReadVariableOp", "read", INPUTS(b), ATTRS(attr_type("dtype", I64)));
    world_begin(world);
    CHECK_OK(world_run(world, "set", NULL, &err), &err);
    CHECK_INT(first(world, "read:0"), 7);
    world_free(world);
}

TEST(a_variable_by_reference_has_a_shape_from_birth)
{
    struct world *world = world_new(NULL);
    struct error err;
    struct edge none = variable(world, "VariableV2", "none", "", &SHAPE(0, 3));
    struct edge open = variable(world, "VariableV2", "open", "", &SHAPE_UNKNOWN);
    struct edge two = ints(world, I64, &SHAPE(2), (const int64_t[]){5, 6});
    builder_add(&world->b, "IsVariableInitialized", "has_none", INPUTS(none), NO_ATTRS);
    builder_add(&world->b, "IsVariableInitialized", "has_open", INPUTS(open), NO_ATTRS);
    builder_add(&world->b, "Assign", "checked", INPUTS(open, two), NO_ATTRS);
    builder_add(&world->b, "Assign", "unchecked", INPUTS(open, two),
                ATTRS(attr_bool("validate_shape", false)));
    world_begin(world);
    CHECK_INT(first(world, "has_none:0"), 1);
    CHECK_INT(first(world, "has_open:0"), 0);
    CHECK_FAILS(world_run(world, "checked", NULL, &err), &err, INVALID);
    CHECK_OK(world_run(world, "unchecked", NULL, &err), &err);
    CHECK_OK(world_run(world, "checked", NULL, &err), &err);
    world_free(world);
}

TEST(one_name_for_two_types_by_reference_is_an_internal_error)
{
    struct world *world = world_new(NULL);
    struct error err;
    struct edge a = variable(world, "VariableV2", "a", "v", &SHAPE(1));
    struct edge b = builder_add(&world->b, "VariableV2", "b", NO_INPUTS,
                                ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE(1)),
                                      attr_string("shared_name", "v")));
    builder_add(&world->b, "IsVariableInitialized", "has_a", INPUTS(a), NO_ATTRS);
    builder_add(&world->b, "IsVariableInitialized", "has_b", INPUTS(b), NO_ATTRS);
    world_begin(world);
    struct tensor out = {0};
    CHECK_INT(first(world, "has_a:0"), 0);
    CHECK_FAILS(world_run(world, "has_b:0", &out, &err), &err, INTERNAL);
    world_free(world);
}

TEST(nothing_is_scattered_into_an_empty_variable_or_by_no_coordinates)
{
    struct world *world = world_new(NULL);
    struct error err;
    struct edge none = variable(world, "VariableV2", "none", "", &SHAPE(3, 0));
    struct edge some = variable(world, "VariableV2", "some", "", &SHAPE(2));
    static const int64_t zeros[2];
    builder_add(&world->b, "Assign", "set", INPUTS(some, ints(world, I64, &SHAPE(2), zeros)),
                NO_ATTRS);
    builder_add(&world->b, "ScatterNdUpdate", "into_none",
                INPUTS(none, ints(world, I32, &SHAPE(1, 1), zeros),
                       ints(world, I64, &SHAPE(1, 0), zeros)),
                NO_ATTRS);
    builder_add(&world->b, "ScatterNdUpdate", "by_none",
                INPUTS(some, ints(world, I32, &SHAPE(1, 0), zeros),
                       ints(world, I64, &SHAPE(1, 2), zeros)),
                NO_ATTRS);
    world_begin(world);
    CHECK_OK(world_run(world, "set", NULL, &err), &err);
    CHECK_FAILS(world_run(world, "into_none", NULL, &err), &err, INVALID);
    CHECK_FAILS(world_run(world, "by_none", NULL, &err), &err, INVALID);
    world_free(world);
}

TEST(nothing_is_gathered_from_an_empty_tensor)
{
    struct world *world = world_new(NULL);
    struct error err;
    struct tensor out = {0};
    static const int64_t zeros[3];
    builder_add(
        &world->b, "GatherNd", "gather",
        INPUTS(ints(world, I64, &SHAPE(3, 0), zeros), ints(world, I32, &SHAPE(2, 0), zeros)),
        NO_ATTRS);
    world_begin(world);
    CHECK_FAILS(world_run(world, "gather:0", &out, &err), &err, INVALID);
    world_free(world);
}

/* Parameters that are vectors start each batch with a block of its own. */
TEST(truncated_normals_of_vectors_take_a_block_for_each_batch)
{
    struct world *world = world_new(NULL);
    struct error err;
    struct tensor out = {0}, normal = {0};
    struct builder *b = &world->b;
    static const double bounds[] = {0, 1, -50, 50};
    struct edge parameter[4];
    for (int i = 0; i < 4; i++)
        parameter[i] = builder_add(b, "Reshape", "parameter",
                                   INPUTS(builder_scalar(b, "bound", F64, bounds[i]),
                                          builder_ints(b, "one", I32, (const int64_t[]){1}, 1)),
                                   NO_ATTRS);
    builder_add(b, "ParameterizedTruncatedNormal", "truncated",
                INPUTS(builder_ints(b, "shape", I32, (const int64_t[]){2, 1}, 2), parameter[0],
                       parameter[1], parameter[2], parameter[3]),
                ATTRS(attr_int("seed", 3), attr_int("seed2", 4), attr_type("dtype", F64)));
    builder_add(b, "RandomStandardNormal", "normal",
                INPUTS(builder_ints(b, "count", I32, (const int64_t[]){4}, 1)),
                ATTRS(attr_int("seed", 3), attr_int("seed2", 4), attr_type("dtype", F64)));
    world_begin(world);
    CHECK_OK(world_run(world, "truncated:0", &out, &err), &err);
    CHECK_OK(world_run(world, "normal:0", &normal, &err), &err);
    CHECK(tensor_number(&out, 0) == tensor_number(&normal, 0));
    CHECK(tensor_number(&out, 1) == tensor_number(&normal, 2)); /* two doubles in a block */
    tensor_release(&out);
    tensor_release(&normal);
    world_free(world);
}

TEST(binomial_numbers_move_the_state_on)
{
    struct world *world = world_new(NULL);
    struct error err;
    struct builder *b = &world->b;
    struct tensor out = {0};
    struct edge state = variable(world, "VarHandleOp", "state", "s", &SHAPE(3));
    builder_add(b, "AssignVariableOp", "set",
                INPUTS(state, ints(world, I64, &SHAPE(3), (const int64_t[]){5, 0, 1})),
                NO_ATTRS);
    builder_add(b, "StatefulRandomBinomial", "draw",
                INPUTS(state, builder_scalar(b, "algorithm", I64, 1),
                       builder_ints(b, "shape", I32, (const int64_t[]){4}, 1),
                       builder_scalar(b, "counts", F32, 9),
                       builder_scalar(b, "probs", F32, .5)),
                ATTRS(attr_type("dtype", I64)));
    builder_add(b, "ReadVariableOp", "read", INPUTS(state), ATTRS(attr_type("dtype", I64)));
    world_begin(world);
    CHECK_OK(world_run(world, "set", NULL, &err), &err);
    CHECK_OK(world_run(world, "draw:0", &out, &err), &err);
    CHECK_INT(first(world, "read:0"), 5 + 256 * (2 * 100 * (4 + 3) / 4));
    tensor_release(&out);
    world_free(world);
}

/* Handles of kept tensors count from 0 in every session. */
TEST(session_handles_are_numbered_by_their_session)
{
    for (int i = 0; i < 2; i++) {
        struct world *world = world_new(NULL);
        struct error err;
        struct tensor out = {0};
        builder_add(&world->b, "GetSessionHandle", "keep",
                    INPUTS(builder_scalar(&world->b, "value", F32, 1)), NO_ATTRS);
        world_begin(world);
        CHECK_OK(world_run(world, "keep:0", &out, &err), &err);
        CHECK(out.dtype == STRING && strncmp(tensor_strings(&out)->data, "keep;0;", 7) == 0);
        tensor_release(&out);
        world_free(world);
    }
}

/* Whether a node that is given that handle fails so. */
static bool handle_fails(struct world *world, const char *fetch, enum error_code code,
                         const char *text)
{
    struct error err;
    struct tensor out = {0};
    CHECK_FAILS(world_run(world, fetch, strchr(fetch, ':') ? &out : NULL, &err), &err, code);
    CHECK_TEXT(err.text, text);
    return true;
}

TEST(bad_handles_of_kept_tensors_are_told_as_tensorflow_does)
{
    struct world *world = world_new(NULL);
    struct builder *b = &world->b;
    struct edge none = builder_text(b, "none", "a;0;b");
    struct edge list = builder_add(b, "Pack", "list", INPUTS(none), ATTRS(attr_int("N", 1)));
    struct edge kept = builder_add(b, "GetSessionHandle", "keep",
                                   INPUTS(builder_scalar(b, "value", F32, 1)), NO_ATTRS);
    builder_add(b, "GetSessionTensor", "get", INPUTS(none), ATTRS(attr_type("dtype", F32)));
    builder_add(b, "GetSessionTensor", "getlist", INPUTS(list), ATTRS(attr_type("dtype", F32)));
    builder_add(b, "GetSessionTensor", "other", INPUTS(kept), ATTRS(attr_type("dtype", I32)));
    builder_add(b, "DeleteSessionTensor", "delete", INPUTS(none), NO_ATTRS);
    builder_add(b, "DeleteSessionTensor", "deletelist", INPUTS(list), NO_ATTRS);
    world_begin(world);
    handle_fails(world, "get:0", INVALID,
                 "node 'get' (GetSessionTensor): The tensor with handle 'a;0;b' is not in the "
                 "session store.");
    handle_fails(world, "getlist:0", INVALID,
                 "node 'getlist' (GetSessionTensor): handle must be scalar");
    handle_fails(world, "other:0", INTERNAL,
                 "node 'other' (GetSessionTensor): Output 0 of type float does not match "
                 "declared output type int32 for node {{node other}}");
    handle_fails(world, "delete", INVALID,
                 "node 'delete' (DeleteSessionTensor): Failed to delete a tensor with handle "
                 "'a;0;b' in the session store.");
    handle_fails(world, "deletelist", INVALID,
                 "node 'deletelist' (DeleteSessionTensor): `handle` must be scalar");
    world_free(world);
}

TEST(checkpoints_that_are_not_there_cannot_be_merged)
{
    struct world *world = world_new(NULL);
    struct error err;
    struct builder *b = &world->b;
    struct edge part = builder_text(b, "part", folder_path("none"));
    builder_add(
        b, "MergeV2Checkpoints", "merge",
        INPUTS(builder_add(b, "Pack", "parts", INPUTS(part), ATTRS(attr_int("N", 1))), part),
        NO_ATTRS);
    world_begin(world);
    CHECK_FAILS(world_run(world, "merge", NULL, &err), &err, INVALID);
    world_free(world);
}

/* What lies before the records must be there. */
TEST(a_file_shorter_than_its_header_is_at_its_end)
{
    struct world *world = world_new(NULL);
    struct error err;
    struct builder *b = &world->b;
    struct tensor out = {0};
    static const int types[] = {STRING};
    struct edge name = builder_text(b, "name", folder_path("short"));
    struct edge queue = builder_add(b, "FIFOQueueV2", "queue", NO_INPUTS,
                                    ATTRS(attr_type_list("component_types", types, 1)));
    struct edge reader =
        builder_add(b, "FixedLengthRecordReaderV2", "reader", NO_INPUTS,
                    ATTRS(attr_int("record_bytes", 1), attr_int("header_bytes", 2)));
    builder_add(b, "WriteFile", "write", INPUTS(name, builder_text(b, "contents", "x")),
                NO_ATTRS);
    builder_add(b, "QueueEnqueueV2", "enqueue", INPUTS(queue, name),
                ATTRS(attr_type_list("Tcomponents", types, 1)));
    builder_add(b, "ReaderReadV2", "read", INPUTS(reader, queue), NO_ATTRS);
    builder_add(b, "ReaderNumWorkUnitsCompletedV2", "units", INPUTS(reader), NO_ATTRS);
    world_begin(world);
    CHECK_OK(world_run(world, "write", NULL, &err), &err);
    CHECK_OK(world_run(world, "enqueue", NULL, &err), &err);
    CHECK_FAILS(world_run(world, "read:0", &out, &err), &err, OUT_OF_RANGE);
    CHECK_INT(first(world, "units:0"), 0);
    world_free(world);
}

TEST(a_rate_that_is_not_positive_is_refused_where_it_divides)
{
    struct world *world = world_new(NULL);
    struct error err;
    struct builder *b = &world->b;
    struct edge v[2], zero = builder_scalar(b, "zero", F32, 0);
    static const char *const names[] = {"var", "accum"};
    for (int i = 0; i < 2; i++) {
        v[i] = builder_add(b, "VariableV2", names[i], NO_INPUTS,
                           ATTRS(attr_type("dtype", F32), attr_shape("shape", &SHAPE(0))));
        CHECK(v[i].from);
    }
    struct edge none = builder_add(
        b, "Fill", "none", INPUTS(builder_ints(b, "shape", I32, (const int64_t[]){0}, 1), zero),
        NO_ATTRS);
    struct edge one = builder_scalar(b, "one", F32, 1),
                less = builder_scalar(b, "less", F32, -1);
    builder_add(b, "ApplyProximalAdagrad", "good", INPUTS(v[0], v[1], one, zero, zero, none),
                NO_ATTRS);
    builder_add(b, "ApplyProximalAdagrad", "rate", INPUTS(v[0], v[1], zero, zero, zero, none),
                NO_ATTRS);
    builder_add(b, "ApplyProximalAdagrad", "l2", INPUTS(v[0], v[1], one, zero, less, none),
                NO_ATTRS);
    world_begin(world);
    CHECK_OK(world_run(world, "good", NULL, &err), &err);
    CHECK_FAILS(world_run(world, "rate", NULL, &err), &err, INVALID);
    CHECK_FAILS(world_run(world, "l2", NULL, &err), &err, INVALID);
    world_free(world);
}

/* Not even an unknown shape will do. */
TEST(lists_of_other_element_shapes_are_not_joined)
{
    struct world *world = world_new(NULL);
    struct error err;
    struct builder *b = &world->b;
    struct tensor out = {0};
    struct edge size = builder_scalar(b, "size", I32, 1);
    struct edge open = builder_add(
        b, "TensorListReserve", "open", INPUTS(builder_scalar(b, "any", I32, -1), size),
        ATTRS(attr_type("element_dtype", F32), attr_type("shape_type", I32)));
    struct edge known =
        builder_add(b, "TensorListReserve", "known",
                    INPUTS(builder_ints(b, "two", I32, (const int64_t[]){2}, 1), size),
                    ATTRS(attr_type("element_dtype", F32), attr_type("shape_type", I32)));
    for (int i = 0; i < 2; i++)
        builder_add(b, "TensorListLength", i ? "good" : "bad",
                    INPUTS(builder_add(b, "TensorListConcatLists", "both",
                                       INPUTS(i ? open : known, open),
                                       ATTRS(attr_type("element_dtype", F32)))),
                    NO_ATTRS);
    world_begin(world);
    CHECK_INT(first(world, "good:0"), 2);
    CHECK_FAILS(world_run(world, "bad:0", &out, &err), &err, INVALID);
    world_free(world);
}

/* A checkpoint of the older format is read by the op of the newer one, as savers need it. */
TEST(restore_v2_reads_both_formats)
{
    struct error err;
    struct world *world = world_new(NULL);
    char prefix[200], none[200];
    snprintf(prefix, sizeof(prefix), "%s", folder_path("old"));
    snprintf(none, sizeof(none), "%s", folder_path("none"));
    struct edge file = builder_text(&world->b, "file", prefix);
    struct edge name = builder_text(&world->b, "name", "x"),
                other = builder_text(&world->b, "other", "y"),
                all = builder_text(&world->b, "all", "");
    struct edge names = builder_add(&world->b, "Pack", "names", INPUTS(name),
                                    ATTRS(attr_type("T", STRING), attr_int("N", 1)));
    struct edge others = builder_add(&world->b, "Pack", "others", INPUTS(other),
                                     ATTRS(attr_type("T", STRING), attr_int("N", 1)));
    struct edge slices = builder_add(&world->b, "Pack", "slices", INPUTS(all),
                                     ATTRS(attr_type("T", STRING), attr_int("N", 1)));
    builder_add(&world->b, "SaveSlices", "save",
                INPUTS(file, names, slices, ints(world, I64, &SHAPE(2), (int64_t[]){7, 8})),
                ATTRS(attr_type_list("T", (const int[]){I64}, 1)));
    builder_add(&world->b, "RestoreV2", "restore", INPUTS(file, names, slices),
                ATTRS(attr_type_list("dtypes", (const int[]){I64}, 1)));
    builder_add(&world->b, "RestoreV2", "lacks", INPUTS(file, others, slices),
                ATTRS(attr_type_list("dtypes", (const int[]){I64}, 1)));
    builder_add(&world->b, "RestoreV2", "typed", INPUTS(file, names, slices),
                ATTRS(attr_type_list("dtypes", (const int[]){F32}, 1)));
    builder_add(&world->b, "RestoreV2", "none",
                INPUTS(builder_text(&world->b, "nowhere", none), names, slices),
                ATTRS(attr_type_list("dtypes", (const int[]){I64}, 1)));
    world_begin(world);
    CHECK_OK(world_run(world, "save", NULL, &err), &err);
    CHECK_INT(first(world, "restore:0"), 7);
    CHECK_FAILS(world_run(world, "lacks", NULL, &err), &err, NOT_FOUND);
    CHECK_FAILS(world_run(world, "typed", NULL, &err), &err, INVALID);
    CHECK_FAILS(world_run(world, "none", NULL, &err), &err, NOT_FOUND);
    CHECK(strstr(err.text, "Unsuccessful TensorSliceReader constructor: Failed to find any "
                           "matching files for /"));
    world_free(world);
}
