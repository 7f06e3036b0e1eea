/* spec_media.c - what the data section of a job spec says of texts and images. */

#include "base/arena.h"
#include "base/str.h"
#include "runtime/dataset/augment.h"
#include "runtime/dataset/tokenizer.h"
#include "runtime/spec/spec_internal.h"

#define SPEC_SEQUENCE_MAX 1000000
#define SPEC_WORDS 10000 /* of skip-grams, when nothing is said */
#define SPEC_WINDOW_MAX 1000
#define SPEC_NEGATIVES_MAX 10000
#define SPEC_IMAGE_MAX 8192
#define SPEC_AUGMENT_MAX 50

static bool refuse(const struct spec_object *object, const char *field, const char *allowed)
{
    char found[SPEC_FOUND_BYTES];
    return error_at(
        object->err, spec_read_pointer(object, field, -1), INVALID, "%s is %s, allowed: %s",
        field, spec_read_found(spec_read_value(object, field), found, sizeof(found)), allowed);
}

/* --- texts --- */

/* "characters", or an object of one field: a kind with the size of its vocabulary. */
static bool tokenizer_parse(const struct spec_object *data, struct spec_text *text)
{
    static const char allowed[] = "\"characters\", {\"bpe\": tokens} or {\"words\": words}";
    static const char *const kinds[] = {"bpe", "words", NULL};
    json_t *value = spec_read_value(data, "tokenizer");
    text->tokenizer = text->skip_gram ? TOKENIZER_WORDS : TOKENIZER_CHARACTERS;
    text->vocabulary = text->skip_gram ? SPEC_WORDS : 0;
    if (!value)
        return true;
    if (json_is_string(value) && !strcmp(json_string_value(value), "characters")) {
        text->tokenizer = TOKENIZER_CHARACTERS;
        text->vocabulary = 0;
        return true;
    }
    if (!json_is_object(value) || json_object_size(value) != 1)
        return refuse(data, "tokenizer", allowed);
    struct spec_object object;
    bool is_bytes = json_object_get(value, "bpe");
    text->tokenizer = is_bytes ? TOKENIZER_BYTES : TOKENIZER_WORDS;
    return spec_read_object(data, "tokenizer", &object) && spec_read_only(&object, kinds) &&
           spec_read_required(&object, is_bytes ? "bpe" : "words", "the number of tokens") &&
           spec_read_integer(&object, is_bytes ? "bpe" : "words",
                             is_bytes ? TOKENIZER_BYTES_MIN : TOKENIZER_WORDS_MIN,
                             TOKENIZER_SIZE_MAX, &text->vocabulary);
}

static bool skip_gram_parse(const struct spec_object *data, struct spec_text *text)
{
    static const char *const allowed[] = {"window", "negatives", "subsample", NULL};
    struct spec_object object;
    text->skip_gram = spec_read_value(data, "skip_gram");
    text->window = 2;
    text->negatives = 4;
    return spec_read_object(data, "skip_gram", &object) && spec_read_only(&object, allowed) &&
           spec_read_integer(&object, "window", 1, SPEC_WINDOW_MAX, &text->window) &&
           spec_read_integer(&object, "negatives", 1, SPEC_NEGATIVES_MAX, &text->negatives) &&
           spec_read_number(&object, "subsample", 0, 1, &text->subsample);
}

static bool text_parse(const struct spec_object *data, struct spec_text *text)
{
    text->stride = 1;
    if (!skip_gram_parse(data, text) || !tokenizer_parse(data, text) ||
        !spec_read_integer(data, "sequence_length", 1, SPEC_SEQUENCE_MAX,
                           &text->sequence_length) ||
        !spec_read_integer(data, "stride", 1, SPEC_SEQUENCE_MAX, &text->stride))
        return false;
    if (text->skip_gram && text->sequence_length)
        return error_at(data->err, spec_read_pointer(data, "sequence_length", -1), INVALID,
                        "skip-grams are words, not sequences: one of sequence_length and "
                        "skip_gram");
    return true;
}

static void text_write(const struct spec_text *text, struct str *out)
{
    if (!text->sequence_length && !text->skip_gram)
        return;
    if (text->tokenizer == TOKENIZER_CHARACTERS)
        str_add(out, ", \"tokenizer\": \"characters\"");
    else
        str_printf(out, ", \"tokenizer\": {\"%s\": %lld}",
                   text->tokenizer == TOKENIZER_BYTES ? "bpe" : "words",
                   (long long)text->vocabulary);
    if (text->skip_gram) {
        str_printf(out, ", \"skip_gram\": {\"window\": %lld, \"negatives\": %lld",
                   (long long)text->window, (long long)text->negatives);
        str_add(out, ", \"subsample\": ");
        config_write_number(text->subsample, out);
        str_add(out, "}");
    } else {
        str_printf(out, ", \"sequence_length\": %lld, \"stride\": %lld",
                   (long long)text->sequence_length, (long long)text->stride);
    }
}

/* --- images --- */

static bool image_parse(const struct spec_object *data, struct spec_data *out)
{
    out->image_channels = 3;
    if (!spec_read_pair(data, "image_size", SPEC_IMAGE_MAX, out->image_size) ||
        !spec_read_integer(data, "image_channels", 1, 3, &out->image_channels))
        return false;
    return out->image_channels != 2 ||
           refuse(data, "image_channels", "1 (grey) or 3 (colours)");
}

static bool augment_parse(const struct spec_object *data, struct spec_data *out)
{
    json_t *list = spec_read_value(data, "augment");
    if (!list)
        return true;
    if (!json_is_array(list) || json_array_size(list) > SPEC_AUGMENT_MAX)
        return refuse(data, "augment", "a list of classes, at most 50");
    const struct config **all =
        arena_array(data->arena, json_array_size(list) + 1, sizeof(*all));
    for (size_t i = 0; i < json_array_size(list); i++) {
        char field[32];
        snprintf(field, sizeof(field), "%zu", i);
        json_t *item = json_pack("{s:O}", field, json_array_get(list, i));
        struct spec_object object = {item, spec_read_pointer(data, "augment", -1), data->arena,
                                     data->err};
        bool ok = config_read(&object, field, &augment_family, &all[i]);
        json_decref(item);
        if (!ok)
            return false;
        if (!all[i])
            return error_at(data->err, spec_read_pointer(data, "augment", (int)i), INVALID,
                            "an augmentation is null, allowed: its name");
    }
    out->augment = all;
    out->augment_count = (int)json_array_size(list);
    return true;
}

static void image_write(const struct spec_data *data, struct str *out)
{
    if (data->image_size[0])
        str_printf(out, ", \"image_size\": [%lld, %lld]", (long long)data->image_size[0],
                   (long long)data->image_size[1]);
    if (data->image_channels != 3)
        str_printf(out, ", \"image_channels\": %lld", (long long)data->image_channels);
    for (int i = 0; i < data->augment_count; i++) {
        str_add(out, i ? ", " : ", \"augment\": [");
        config_write(data->augment[i], out);
    }
    str_add(out, data->augment_count ? "]" : "");
}

/* --- both --- */

bool spec_media_parse(const struct spec_object *data, struct spec_data *out)
{
    return text_parse(data, &out->text) && image_parse(data, out) && augment_parse(data, out);
}

void spec_media_write(const struct spec_data *data, struct str *out)
{
    text_write(&data->text, out);
    image_write(data, out);
}
