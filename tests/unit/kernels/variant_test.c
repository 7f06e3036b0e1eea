/* variant_test.c - lists and optionals on their way to another process and back. */

#include "base/alloc.h"
#include "base/str.h"
#include "kernels/data/optional.h"
#include "kernels/list.h"
#include "kernels/state/tensor_list.h"
#include "runtime/tensor_pb.h"
#include "tests/unit/test.h"

static struct error err;

static void begin(void)
{
    static bool added;
    if (!added)
        kernels_add(true);
    added = true;
}

/* --- as TensorFlow 2.21 writes them --- */

/* [2]-shaped floats, at most 5, of which there is [1, 2] */
static const char list_of_floats[] =
    "081512002236350a1674656e736f72666c6f773a3a54656e736f724c69737412070001051202"
    "08021a1208011204120208022a080000803f00000040";
/* three items of strings, of which the second was written: ["a", "bc"] */
static const char list_of_strings[] =
    "08151200223c3b0a1674656e736f72666c6f773a3a54656e736f724c697374121002000207ff"
    "ffffffffffffffff0118011a0f080712041202080242016142026263";
/* 3.0 and "x" */
static const char optional_of_two[] =
    "081512002235340a1a74656e736f72666c6f773a3a646174613a3a4f7074696f6e616c120101"
    "1a0a080112002a04000040401a0708071200420178";
static const char optional_none[] =
    "0815120022201f0a1a74656e736f72666c6f773a3a646174613a3a4f7074696f6e616c120100";
static const char a_dataset[] =
    "081512002224230a2174656e736f72666c6f773a3a4461746173657456617269616e74577261"
    "70706572";

static size_t from_hex(const char *hex, unsigned char *out)
{
    size_t size = strlen(hex) / 2;
    for (size_t i = 0; i < size; i++) {
        const char pair[] = {hex[2 * i], hex[2 * i + 1], 0};
        out[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    return size;
}

/* Parsed, written by us and parsed again. */
static struct tensor there_and_back(const char *hex)
{
    unsigned char bytes[300];
    struct tensor first, second;
    struct str again = {0};
    begin();
    CHECK_OK(tensor_parse(&first, bytes, from_hex(hex, bytes), &err), &err);
    tensor_serialize(&first, &again);
    CHECK_OK(tensor_parse(&second, again.data, again.size, &err), &err);
    str_release(&again);
    tensor_release(&first);
    CHECK_INT(second.dtype, VARIANT);
    CHECK_INT(second.shape.rank, 0);
    return second;
}

static struct resource *held(const struct tensor *tensor, const char *kind)
{
    struct resource *resource = kernel_variant(tensor, 0, kind, &err);
    CHECK_OK(resource, &err);
    return resource;
}

TEST(lists)
{
    struct tensor tensor = there_and_back(list_of_floats);
    const struct tensor_list *list = (struct tensor_list *)held(&tensor, TENSOR_LIST);
    CHECK_INT(list->count, 1);
    CHECK_INT(list->max, 5);
    CHECK(shape_equal(&list->shape, &SHAPE(2)));
    CHECK(tensor_f32(kernel_list_item(list, 0))[1] == 2);
    tensor_release(&tensor);

    tensor = there_and_back(list_of_strings);
    list = (struct tensor_list *)held(&tensor, TENSOR_LIST);
    CHECK_INT(list->count, 3);
    CHECK_INT(list->max, -1);
    CHECK_INT(list->dtype, STRING);
    CHECK_INT(list->shape.rank, -1);
    CHECK_INT(kernel_list_item(list, 0)->dtype, DTYPE_NONE);
    CHECK_INT(kernel_list_item(list, 2)->dtype, DTYPE_NONE);
    CHECK_INT(kernel_list_item(list, 1)->count, 2);
    CHECK(!memcmp(tensor_strings(kernel_list_item(list, 1))[1].data, "bc", 2));
    tensor_release(&tensor);
}

TEST(optionals)
{
    struct tensor tensor = there_and_back(optional_of_two);
    const struct optional *optional = (struct optional *)held(&tensor, OPTIONAL_KIND);
    CHECK_INT(optional->width, 2);
    CHECK(tensor_f32(&optional->row[0])[0] == 3);
    CHECK_INT(optional->row[1].dtype, STRING);
    tensor_release(&tensor);

    tensor = there_and_back(optional_none);
    optional = (struct optional *)held(&tensor, OPTIONAL_KIND);
    CHECK_INT(optional->width, -1);
    CHECK(!optional->row);
    tensor_release(&tensor);
}

/* A list in a list in a list ...: what TensorFlow sends as bytes in bytes has a bound, too. */
TEST(lists_in_lists)
{
    struct tensor inner, tensor;
    struct str bytes = {0};
    begin();
    for (int depth = 0; depth < 70; depth++) {
        struct tensor_list *list = kernel_list_new(depth ? VARIANT : F32, &SHAPE_SCALAR, -1);
        CHECK_OK(kernel_list_resize(list, depth ? 1 : 0, &err), &err);
        bool fits = !depth || kernel_list_set(list, 0, &inner, &err);
        if (depth)
            tensor_release(&inner);
        if (!fits) {
            CHECK_INT(depth, LIMIT_LIST_DEPTH);
            resource_unref(&list->resource);
            break;
        }
        CHECK_OK(tensor_init(&tensor, VARIANT, &SHAPE_SCALAR, &err), &err);
        kernel_list_set_element(&tensor, 0, list);
        str_release(&bytes);
        tensor_serialize(&tensor, &bytes);
        inner = tensor;
        bool ok = tensor_parse(&tensor, bytes.data, bytes.size, &err);
        CHECK(ok || depth > 20);
        if (ok)
            tensor_release(&tensor);
    }
    str_release(&bytes);
}

/* --- what comes from anybody --- */

static bool parses(const unsigned char *bytes, size_t size)
{
    struct tensor tensor;
    bool ok = tensor_parse(&tensor, bytes, size, &err);
    if (ok)
        tensor_release(&tensor);
    return ok;
}

/* Every byte of every message set to anything, and cut off anywhere: refused, or read. */
TEST(damaged_variants)
{
    static const char *const all[] = {list_of_floats, list_of_strings, optional_of_two,
                                      optional_none};
    unsigned char bytes[300];
    int refused = 0;
    begin();
    for (int i = 0; i < ARRAY_LEN(all); i++) {
        size_t size = from_hex(all[i], bytes);
        for (size_t at = 0; at < size; at++) {
            unsigned char before = bytes[at];
            refused += !parses(bytes, at);
            for (int value = 0; value < 256; value++) {
                bytes[at] = (unsigned char)value;
                refused += !parses(bytes, size);
            }
            bytes[at] = before;
        }
    }
    CHECK(refused > 1000);
    CHECK(!parses(bytes, from_hex(a_dataset, bytes)));
    CHECK_INT(err.code, UNIMPLEMENTED);
    CHECK(strstr(err.text, "'tensorflow::DatasetVariantWrapper' cannot be sent"));
}

/* Length and bytes. */
static void add_sized(struct str *out, const struct str *bytes)
{
    size_t left = bytes->size;
    for (; left >= 0x80; left >>= 7)
        str_add_char(out, (char)(left | 0x80));
    str_add_char(out, (char)left);
    str_add_bytes(out, bytes->data, bytes->size);
}

/* A TensorProto whose content is a list with this metadata and the TensorProto before in it. */
static void wrap(struct str *bytes, const char *metadata, size_t size)
{
    struct str element = {0}, content = {0}, out = {0};
    str_printf(&element, "\n\x16tensorflow::TensorList\x12%c", (char)size);
    str_add_bytes(&element, metadata, size);
    if (bytes->size) {
        str_add_char(&element, 0x1a);
        add_sized(&element, bytes);
    }
    add_sized(&content, &element);
    str_add_bytes(&out, "\x08\x15\x12\x00\x22", 5);
    add_sized(&out, &content);
    str_release(&content);
    str_release(&element);
    str_release(bytes);
    *bytes = out;
}

TEST(bytes_in_bytes_have_a_bound)
{
    /* none missing, variants, no bound, a scalar's shape */
    static const char of_variants[] = "\x00\x15\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    struct str bytes = {0};
    begin();
    int most = 0;
    for (int depth = 1; depth <= 3000; depth++) {
        wrap(&bytes, of_variants, sizeof(of_variants) - 1);
        if (depth < 80 && parses((unsigned char *)bytes.data, bytes.size))
            most = depth;
    }
    CHECK_INT(most, LIMIT_LIST_DEPTH);
    CHECK(!parses((unsigned char *)bytes.data, bytes.size));
    CHECK(strstr(err.text, "lists in lists in lists"));
    str_release(&bytes);
}
