/* parse_test.c - tf.Examples on the wire: what is legal, what is not, what wins. */

#include "base/alloc.h"
#include "base/str.h"
#include "kernels/io/parse_sequence.h"
#include "tests/unit/test.h"

static struct error err;

/* --- writing --- */

static void add_varint(struct str *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        str_add_char(out, (char)(value | 0x80));
    str_add_char(out, (char)value);
}

static void add_piece(struct str *out, int field, const struct str *piece)
{
    add_varint(out, WIRE_TAG(field, WIRE_BYTES));
    add_varint(out, piece->size);
    str_add_bytes(out, str_text(piece), piece->size);
}

/* A map entry of field 1: key and value. */
static void add_entry(struct str *out, const char *key, const struct str *value)
{
    struct str entry = {0}, name = {0};
    str_add(&name, key);
    add_piece(&entry, 1, &name);
    add_piece(&entry, 2, value);
    add_piece(out, 1, &entry);
    str_release(&entry);
    str_release(&name);
}

/* A Feature of int64s: packed, or one by one. */
static void add_ints(struct str *out, bool packed, int count, const int64_t *values)
{
    struct str list = {0}, data = {0};
    for (int i = 0; i < count; i++) {
        if (!packed)
            add_varint(&list, WIRE_TAG(1, WIRE_VARINT));
        add_varint(packed ? &data : &list, (uint64_t)values[i]);
    }
    if (packed)
        add_piece(&list, 1, &data);
    add_piece(out, 3, &list);
    str_release(&list);
    str_release(&data);
}

#define INTS(...)                                                                              \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])               \
    {                                                                                          \
        __VA_ARGS__                                                                            \
    }

/* Adds feature `key` with these numbers to a Features message. */
static void feature(struct str *features, const char *key, bool packed, int count,
                    const int64_t *values)
{
    struct str value = {0};
    add_ints(&value, packed, count, values);
    add_entry(features, key, &value);
    str_release(&value);
}

/* --- reading --- */

static const int64_t fallback = -7;

/* Keys "d" (dense, two of them), "s" (sparse), "r" (ragged), "v" (dense of variable length). */
static struct feature_keys keys_new(struct tensor *defaults)
{
    struct feature_keys keys;
    kernel_feature_keys_init(&keys, 4);
    static const enum feature_kind kinds[] = {FEATURE_DENSE, FEATURE_SPARSE, FEATURE_RAGGED,
                                              FEATURE_DENSE};
    for (int i = 0; i < 4; i++) {
        keys.keys[i] = (struct feature_key){
            .kind = kinds[i], .name = &"dsrv"[i], .name_size = 1, .dtype = I64, .splits = I32};
    }
    const int64_t two[] = {fallback, fallback};
    CHECK_OK(tensor_init_copy(&defaults[0], I64, &SHAPE(2), two, &err), &err);
    CHECK_OK(tensor_init_copy(&defaults[1], I64, &SHAPE_SCALAR, two, &err), &err);
    CHECK_OK(kernel_feature_set_shape(&keys.keys[0], &SHAPE(2), &err), &err);
    CHECK_OK(kernel_feature_set_shape(&keys.keys[3], &SHAPE(-1), &err), &err);
    keys.keys[0].default_value = &defaults[0];
    keys.keys[3].default_value = &defaults[1];
    CHECK_OK(kernel_feature_index(&keys, &err), &err);
    return keys;
}

static bool parse(const struct str *features, int count, bool sequence,
                  struct example_output *out)
{
    struct tensor defaults[2];
    struct feature_keys keys = keys_new(defaults);
    struct tensor_string *texts = alloc_array((size_t)count, sizeof(*texts));
    struct str *examples = alloc_array((size_t)count, sizeof(*examples));
    for (int i = 0; i < count; i++) {
        add_piece(&examples[i], 1, &features[i]);
        texts[i] = (struct tensor_string){examples[i].data, examples[i].size};
    }
    const struct example_batch batch = {
        .serialized = texts, .count = count, .sequence = sequence};
    bool ok = kernel_example_parse(&keys, &batch, out, &err);
    for (int i = 0; i < count; i++)
        str_release(&examples[i]);
    free(examples);
    free(texts);
    tensor_release(&defaults[0]);
    tensor_release(&defaults[1]);
    kernel_feature_keys_release(&keys);
    return ok;
}

static void check_ints(const struct tensor *tensor, int count, const int64_t *values)
{
    CHECK_INT(tensor->dtype, I64);
    CHECK_INT(tensor->count, count);
    for (int i = 0; i < count; i++)
        CHECK_INT(tensor_i64(tensor)[i], values[i]);
}

TEST(examples_become_dense_sparse_ragged_and_padded_tensors)
{
    struct str features[3] = {{0}, {0}, {0}};
    feature(&features[0], "d", true, INTS(1, -2));
    feature(&features[0], "s", false, INTS(3, 4));
    feature(&features[0], "r", true, INTS(5));
    feature(&features[1], "v", true, INTS(6, 7, 8));
    feature(&features[1], "unknown", true, INTS(9));
    feature(&features[2], "s", true, INTS(10));
    feature(&features[2], "v", false, INTS(11));
    struct example_output out[4];
    CHECK_OK(parse(features, 3, false, out), &err);
    check_ints(&out[0].values, INTS(1, -2, fallback, fallback, fallback, fallback));
    check_ints(&out[1].values, INTS(3, 4, 10));
    check_ints(&out[1].indices, INTS(0, 0, 0, 1, 2, 0));
    check_ints(&out[1].shape, INTS(3, 2));
    check_ints(&out[2].values, INTS(5));
    CHECK_INT(out[2].indices.count, 4);
    for (int i = 0; i < 4; i++)
        CHECK_INT(tensor_i32(&out[2].indices)[i], i > 0);
    check_ints(&out[3].values, INTS(-7, -7, -7, 6, 7, 8, 11, -7, -7));
    kernel_example_release(out, 4);
    for (int i = 0; i < 3; i++)
        str_release(&features[i]);
}

TEST(the_last_of_equal_keys_wins_but_an_empty_one_does_not)
{
    struct str features = {0}, none = {0};
    struct example_output out[4];
    feature(&features, "d", true, INTS(1, 2, 3)); /* of the wrong size, if it counted */
    feature(&features, "d", true, INTS(4, 5));
    add_entry(&features, "d", &none);
    CHECK_OK(parse(&features, 1, false, out), &err);
    check_ints(&out[0].values, INTS(4, 5));
    kernel_example_release(out, 4);
    CHECK_FAILS(parse(&features, 1, true, out), &err, INVALID);
    str_release(&features);
}

TEST(pieces_of_a_list_are_one_list)
{
    struct str features = {0}, value = {0}, list = {0}, packed = {0};
    struct example_output out[4];
    add_varint(&packed, 1);
    add_varint(&packed, 300);
    add_piece(&list, 1, &packed);
    add_varint(&list, WIRE_TAG(1, WIRE_VARINT));
    add_varint(&list, 5);
    add_piece(&list, 1, &packed);
    add_piece(&value, 3, &list);
    add_entry(&features, "s", &value);
    CHECK_OK(parse(&features, 1, false, out), &err);
    check_ints(&out[1].values, INTS(1, 300, 5, 1, 300));
    kernel_example_release(out, 4);
    str_release(&features);
    str_release(&value);
    str_release(&list);
    str_release(&packed);
}

TEST(wrong_counts_and_types_name_their_key)
{
    struct str features = {0}, value = {0}, text = {0};
    struct example_output out[4];
    feature(&features, "d", true, INTS(1));
    CHECK_FAILS(parse(&features, 1, false, out), &err, INVALID);
    CHECK_TEXT(err.text, "Name: <unknown>, Key: d, Index: 0.  Number of int64 values != "
                         "expected.  Values size: 1 but output shape: [2]");
    str_clear(&features);
    add_piece(&value, 1, &text); /* a list of strings */
    add_entry(&features, "s", &value);
    CHECK_FAILS(parse(&features, 1, false, out), &err, INVALID);
    CHECK_TEXT(err.text, "Name: <unknown>, Key: s, Index: 0.  Data types don't match. Data "
                         "type: string but expected type: int64");
    str_clear(&features);
    str_clear(&value);
    add_piece(&value, 7, &text); /* of no kind that there is */
    add_entry(&features, "s", &value);
    CHECK_FAILS(parse(&features, 1, false, out), &err, INVALID);
    str_release(&features);
    str_release(&value);
}

/* Every prefix, and every change of one byte: an answer, never a fault. */
TEST(what_is_cut_or_changed_is_parsed_or_refused)
{
    struct str features = {0};
    struct example_output out[4];
    feature(&features, "d", true, INTS(1, INT64_MIN));
    feature(&features, "s", false, INTS(3, 4));
    feature(&features, "v", true, INTS(5, 6));
    size_t size = features.size;
    for (size_t cut = 0; cut < size; cut++) {
        features.size = cut;
        if (parse(&features, 1, false, out))
            kernel_example_release(out, 4);
        else
            CHECK_INT(err.code, INVALID);
    }
    features.size = size;
    for (size_t at = 0; at < size; at++) {
        char kept = features.data[at];
        for (int value = 0; value < 256; value += 7) {
            features.data[at] = (char)value;
            if (parse(&features, 1, false, out))
                kernel_example_release(out, 4);
            else
                CHECK_INT(err.code, INVALID);
        }
        features.data[at] = kept;
    }
    str_release(&features);
}

TEST(a_key_may_be_asked_for_once)
{
    struct feature_keys keys;
    kernel_feature_keys_init(&keys, 2);
    for (int i = 0; i < 2; i++)
        keys.keys[i] = (struct feature_key){
            .kind = FEATURE_SPARSE, .name = "a", .name_size = 1, .dtype = F32};
    CHECK_FAILS(kernel_feature_index(&keys, &err), &err, INTERNAL);
    kernel_feature_keys_release(&keys);
}

/* --- sequences --- */

TEST(lists_of_sequences_become_rows)
{
    struct str examples[2] = {{0}, {0}}, lists = {0}, list = {0}, value = {0};
    add_ints(&value, true, INTS(1, 2));
    add_piece(&list, 1, &value);
    str_clear(&value);
    add_ints(&value, true, INTS(3, 4));
    add_piece(&list, 1, &value);
    add_entry(&lists, "d", &list);
    add_entry(&lists, "s", &list);
    add_entry(&lists, "r", &list);
    add_piece(&examples[0], 2, &lists); /* the second one is empty */

    struct tensor defaults[2];
    struct feature_keys keys = keys_new(defaults);
    keys.count = 3;
    const struct tensor_string texts[] = {{examples[0].data, examples[0].size}, {NULL, 0}};
    const struct example_batch batch = {.serialized = texts, .count = 2, .sequence = true};
    struct sequence_output out[3];
    CHECK_FAILS(kernel_sequence_parse(&keys, (bool[]){false, false, false}, &batch, out, &err),
                &err, INVALID);
    CHECK_OK(kernel_sequence_parse(&keys, (bool[]){true, false, false}, &batch, out, &err),
             &err);
    check_ints(&out[0].values, INTS(1, 2, 3, 4, 0, 0, 0, 0));
    check_ints(&out[0].lengths, INTS(2, 0));
    check_ints(&out[1].shape, INTS(2, 2, 2));
    check_ints(&out[1].indices, INTS(0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 1, 1));
    check_ints(&out[2].values, INTS(1, 2, 3, 4));
    CHECK_INT(tensor_i32(&out[2].outer)[1], 2);
    CHECK_INT(tensor_i32(&out[2].inner)[2], 4);
    for (int i = 0; i < 3; i++) {
        tensor_release(&out[i].values);
        tensor_release(&out[i].indices);
        tensor_release(&out[i].shape);
        tensor_release(&out[i].lengths);
        tensor_release(&out[i].outer);
        tensor_release(&out[i].inner);
    }
    tensor_release(&defaults[0]);
    tensor_release(&defaults[1]);
    kernel_feature_keys_release(&keys);
    str_release(&examples[0]);
    str_release(&lists);
    str_release(&list);
    str_release(&value);
}

TEST(varints_have_at_most_ten_bytes)
{
    const uint8_t ten[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x00};
    struct wire wire = wire_of(ten, sizeof(ten));
    uint64_t value;
    CHECK(wire_varint(&wire, &value));
    CHECK(value == UINT64_MAX);
    CHECK_INT(wire_left(&wire), 1);
    const uint8_t eleven[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00};
    wire = wire_of(eleven, sizeof(eleven));
    CHECK(!wire_varint(&wire, &value));
    wire = wire_of(eleven, 3);
    CHECK(!wire_varint(&wire, &value));
}
