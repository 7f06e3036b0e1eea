/*
 * string_unicode.c - text of any encoding as characters, and back.
 *
 * UTF-8, UTF-16-BE and UTF-32-BE are read by hand, so that errors and offsets are exact; all
 * other encodings by ICU's converters.
 */

#include "kernels/ref/numbers.h"

#include <unicode/ucnv.h>
#include <unicode/uscript.h>
#include <unicode/ustring.h>

#include "base/alloc.h"
#include "base/str.h"

/* What becomes of bytes that are no character: an error, another character, nothing. */
enum policy { STRICT, REPLACE, IGNORE };

struct errors {
    enum policy policy;
    int32_t replacement;
    bool control;              /* control characters are replaced too */
    bool control_is_malformed; /* so that STRICT refuses them */
};

static bool read_errors(const struct node *node, struct errors *errors, struct error *err)
{
    const char *name = node_attr_string(node, "errors", "replace");
    errors->policy = !strcmp(name, "strict")   ? STRICT
                     : !strcmp(name, "ignore") ? IGNORE
                                               : REPLACE;
    errors->replacement = (int32_t)node_attr_int(node, "replacement_char", 0xfffd);
    errors->control = node_attr_bool(node, "replace_control_characters", false);
    if (errors->replacement < 0 || errors->replacement > 0x10ffff ||
        U_IS_SURROGATE(errors->replacement))
        return fail(err, INVALID, "replacement_char out of unicode codepoint range");
    return true;
}

/* --- reading --- */

struct characters {
    int32_t *values;
    int64_t *starts;
    int count, capacity, starts_capacity;
};

/* Takes a character (-1: none) that begins at byte `start`; false if that is an error. */
static bool take(struct characters *out, const struct errors *errors, int32_t c, int64_t start)
{
    bool control = errors->control && c >= 0 && c <= 0x1f;
    if (errors->policy == STRICT && (c < 0 || (control && errors->control_is_malformed)))
        return false;
    if (c < 0 || control) {
        if (errors->policy == IGNORE)
            return true;
        c = errors->replacement;
    }
    out->values = alloc_grow(out->values, out->count, &out->capacity, sizeof(*out->values));
    out->starts =
        alloc_grow(out->starts, out->count, &out->starts_capacity, sizeof(*out->starts));
    out->values[out->count] = c;
    out->starts[out->count++] = start;
    return true;
}

typedef int32_t next_character(const uint8_t *bytes, size_t size, size_t *at);

static int32_t next_utf8(const uint8_t *bytes, size_t size, size_t *at)
{
    size_t window = size - *at < 4 ? size - *at : 4;
    int32_t used = 0, c;
    U8_NEXT(bytes + *at, used, (int32_t)window, c);
    *at += (size_t)used;
    return c;
}

static int32_t next_utf16(const uint8_t *bytes, size_t size, size_t *at)
{
    const uint8_t *b = bytes + *at;
    size_t left = size - *at;
    if (left < 2) {
        *at = size;
        return -1;
    }
    int32_t c = b[0] << 8 | b[1];
    *at += 2;
    if (!U_IS_SURROGATE(c))
        return c;
    if (!U_IS_SURROGATE_LEAD(c) || left < 4)
        return -1;
    int32_t trail = b[2] << 8 | b[3];
    if (!U_IS_TRAIL(trail))
        return -1;
    *at += 2;
    return U16_GET_SUPPLEMENTARY(c, trail);
}

static int32_t next_utf32(const uint8_t *bytes, size_t size, size_t *at)
{
    const uint8_t *b = bytes + *at;
    if (size - *at < 4) {
        *at = size;
        return -1;
    }
    uint32_t c = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    *at += 4;
    return c > 0x10ffff || U_IS_SURROGATE(c) ? -1 : (int32_t)c;
}

static next_character *reader_for(const char *encoding)
{
    if (!strcmp(encoding, "UTF-8"))
        return next_utf8;
    if (!strcmp(encoding, "UTF-16-BE") || !strcmp(encoding, "UTF-16BE"))
        return next_utf16;
    if (!strcmp(encoding, "UTF-32-BE") || !strcmp(encoding, "UTF-32BE"))
        return next_utf32;
    return NULL;
}

static bool malformed(const struct node *node, struct error *err)
{
    (void)node;
    return fail(err, INVALID, "Invalid formatting on input string");
}

/* By a converter, a character at a time. */
static bool read_converted(UConverter *converter, const struct tensor_string *text,
                           const struct errors *errors, struct characters *out)
{
    const char *at = text->data ? text->data : "", *end = at + text->size, *begin = at;
    ucnv_reset(converter);
    while (at < end) {
        UErrorCode status = U_ZERO_ERROR;
        const char *start = at;
        int32_t c = (int32_t)ucnv_getNextUChar(converter, &at, end, &status);
        if (status == U_INDEX_OUTOFBOUNDS_ERROR)
            return true;
        if (U_FAILURE(status)) {
            c = -1;
            ucnv_resetToUnicode(converter);
            if (at == start)
                at++;
        }
        if (!take(out, errors, c, start - begin))
            return false;
    }
    return true;
}

/* Where strings of one encoding are read. */
struct source {
    next_character *next;
    UConverter *converter;
    struct errors errors;
};

static bool source_open(struct source *source, const struct node *node, struct error *err)
{
    const char *encoding = node_attr_string(node, "input_encoding", "");
    *source = (struct source){.next = reader_for(encoding)};
    if (!read_errors(node, &source->errors, err))
        return false;
    if (source->next)
        return true;
    UErrorCode status = U_ZERO_ERROR;
    source->converter = ucnv_open(encoding, &status);
    if (U_SUCCESS(status))
        ucnv_setToUCallBack(source->converter, UCNV_TO_U_CALLBACK_STOP, NULL, NULL, NULL,
                            &status);
    if (U_SUCCESS(status))
        return true;
    ucnv_close(source->converter);
    return fail(err, INVALID, "Could not create converter for input encoding: %s", encoding);
}

static bool source_read(const struct source *source, const struct tensor_string *text,
                        struct characters *out)
{
    if (source->converter)
        return read_converted(source->converter, text, &source->errors, out);
    for (size_t at = 0; at < text->size;) {
        int64_t start = (int64_t)at;
        int32_t c = source->next((const uint8_t *)text->data, text->size, &at);
        if (!take(out, &source->errors, c, start))
            return false;
    }
    return true;
}

static void source_close(struct source *source, struct characters *characters)
{
    if (source->converter)
        ucnv_close(source->converter);
    free(characters->values);
    free(characters->starts);
}

/* --- writing --- */

static void write_bytes(struct str *out, uint32_t value, int bytes)
{
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
        str_add_char(out, (char)(value >> shift));
}

static void write_character(struct str *out, const char *encoding, int32_t c)
{
    if (!strcmp(encoding, "UTF-8")) {
        char bytes[4];
        int32_t size = 0;
        U8_APPEND_UNSAFE(bytes, size, c);
        str_add_bytes(out, bytes, (size_t)size);
    } else if (!strcmp(encoding, "UTF-32-BE")) {
        write_bytes(out, (uint32_t)c, 4);
    } else if (c > 0xffff) {
        write_bytes(out, U16_LEAD(c), 2);
        write_bytes(out, U16_TRAIL(c), 2);
    } else {
        write_bytes(out, (uint32_t)c, 2);
    }
}

/* --- the ops --- */

static bool decode_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct source source;
    struct characters all = {0};
    struct tensor *splits = kernel_output(call, 0, &SHAPE(in->count + 1), err);
    if (!splits || !source_open(&source, call->node, err))
        return false;
    bool ok = true;
    tensor_set_number(splits, 0, 0);
    for (int64_t i = 0; ok && i < in->count; i++) {
        ok = source_read(&source, tensor_strings(in) + i, &all) || malformed(call->node, err);
        tensor_set_number(splits, i + 1, all.count);
    }
    struct tensor *values = ok ? kernel_output(call, 1, &SHAPE(all.count), err) : NULL;
    bool offsets = call->node->outputs_count > 2;
    struct tensor *starts =
        values && offsets ? kernel_output(call, 2, &SHAPE(all.count), err) : NULL;
    ok = values && (starts || !offsets);
    for (int k = 0; ok && k < all.count; k++) {
        ((int32_t *)values->data)[k] = all.values[k];
        if (starts)
            ((int64_t *)starts->data)[k] = all.starts[k];
    }
    source_close(&source, &all);
    return ok;
}

static bool transcode_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    const char *encoding = node_attr_string(call->node, "output_encoding", "UTF-8");
    struct source source;
    struct characters characters = {0};
    struct str text = {0};
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (!out || !source_open(&source, call->node, err))
        return false;
    bool ok = true;
    source.errors.control_is_malformed = true;
    for (int64_t i = 0; ok && i < out->count; i++) {
        characters.count = 0;
        str_clear(&text);
        ok = source_read(&source, tensor_strings(in) + i, &characters) ||
             malformed(call->node, err);
        for (int k = 0; k < characters.count; k++)
            write_character(&text, encoding, characters.values[k]);
        if (ok)
            tensor_set_string(out, i, str_text(&text), text.size);
    }
    str_release(&text);
    source_close(&source, &characters);
    return ok;
}

static bool check_splits(const struct tensor *values, const struct tensor *splits,
                         struct error *err)
{
    if (values->shape.rank != 1 || splits->shape.rank != 1)
        return fail(err, INVALID,
                    "Both the input_tensor and input_splits should be of rank 1. ");
    if (splits->count < 1)
        return fail(err, INVALID,
                    "Input_splits should contain elements, but given input_values has 0 "
                    "elements");
    int64_t last = 0;
    if (tensor_integer(splits, 0) != 0)
        return fail(err, INVALID, "First value in input_splits must be zero.");
    if (tensor_integer(splits, splits->count - 1) != values->count)
        return fail(err, INVALID,
                    "Last value in input_splits must be equal to length of input_tensor.");
    for (int64_t i = 0; i < splits->count; i++) {
        int64_t split = tensor_integer(splits, i);
        if (split < last)
            return fail(err, INVALID,
                        "Values in input_splits must be equal or in ascending order.");
        if (split > values->count)
            return fail(err, INVALID,
                        "Values in input_splits must be less than or equal to input_tensor "
                        "length.");
        last = split;
    }
    return true;
}

static bool encode_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *values = kernel_in(call, 0), *splits = kernel_in(call, 1);
    const char *encoding = node_attr_string(call->node, "output_encoding", "UTF-8");
    struct errors errors;
    if (!read_errors(call->node, &errors, err) || !check_splits(values, splits, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &SHAPE(splits->count - 1), err);
    struct str text = {0};
    bool ok = out != NULL;
    for (int64_t r = 0; ok && r + 1 < splits->count; r++) {
        str_clear(&text);
        for (int64_t k = tensor_integer(splits, r); ok && k < tensor_integer(splits, r + 1);
             k++) {
            int32_t c = tensor_i32(values)[k];
            bool valid = c >= 0 && c <= 0x10ffff && !U_IS_SURROGATE(c);
            if (valid || errors.policy == REPLACE)
                write_character(&text, encoding, valid ? c : errors.replacement);
            else if (errors.policy == STRICT)
                ok = fail(err, INVALID,
                          "Code point is out of range for Unicode, or is a surrogate.");
        }
        if (ok)
            tensor_set_string(out, r, str_text(&text), text.size);
    }
    str_release(&text);
    return ok;
}

static bool script_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    for (int64_t i = 0; out && i < out->count; i++) {
        UErrorCode status = U_ZERO_ERROR;
        UScriptCode script = uscript_getScript(tensor_i32(in)[i], &status);
        ((int32_t *)out->data)[i] = U_SUCCESS(status) ? (int32_t)script : USCRIPT_INVALID_CODE;
    }
    return out != NULL;
}

const struct kernel kernel_unicode_decode = {
    .op = "UnicodeDecode", .device = CPU, .run = decode_run};
const struct kernel kernel_unicode_decode_with_offsets = {
    .op = "UnicodeDecodeWithOffsets", .device = CPU, .run = decode_run};
const struct kernel kernel_unicode_transcode = {
    .op = "UnicodeTranscode", .device = CPU, .run = transcode_run};
const struct kernel kernel_unicode_encode = {
    .op = "UnicodeEncode", .device = CPU, .run = encode_run};
const struct kernel kernel_unicode_script = {
    .op = "UnicodeScript", .device = CPU, .run = script_run};
