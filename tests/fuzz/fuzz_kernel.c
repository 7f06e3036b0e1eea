/*
 * fuzz_kernel.c - kernels that take bytes apart: images, numbers, lists, patterns, encodings,
 * messages.
 *
 * The first byte says which of the ways below; what its kernel is given follows, parts cut at
 * bytes 0xfe.  The graph of all ways is made once.  A kernel answers, the same each time, or
 * fails and says why.
 */

#include "base/alloc.h"
#include "kernels/list.h"
#include "runtime/builder.h"
#include "runtime/session.h"
#include "runtime/tensor.h"
#include "tests/fuzz/fuzz.h"

enum { WAYS_MAX = 96, INPUTS_MAX = 5, FEEDS_MAX = 3, OUTPUTS_MAX = 4, LIST = 3 };
enum { MEMORY = 32 << 20, TIMEOUT_MS = 10000 };

int LLVMFuzzerInitialize(int *argc, char ***argv);

/*
 * An op and its inputs, a letter each: s a text, v a list of three, i a number of one byte, all
 * three from the input; F L T constants, R a reader.
 */
struct way {
    const char *inputs;
    int outputs;
    struct callable *callable;
};

static struct way ways[WAYS_MAX];
static int ways_count;
static struct session *session;
static struct builder builder;
static struct edge feeds[INPUTS_MAX][3]; /* placeholders of every kind, one for each input */
static const char feed_letters[] = "svi";

static struct edge input(char letter, int i)
{
    switch (letter) {
    case 'F':
        return builder_scalar(&builder, "real", F32, 0.5);
    case 'L':
        return builder_scalar(&builder, "integer", I64, 2);
    case 'T':
        return builder_text(&builder, "text", "farmhash64");
    case 'R':
        return builder_add(&builder, "TFRecordReaderV2", "reader", NO_INPUTS, NO_ATTRS);
    default:
        return feeds[i][strchr(feed_letters, letter) - feed_letters];
    }
}

static void way(const char *op, const char *inputs, const struct attr *attrs, int attrs_count)
{
    struct edge edges[INPUTS_MAX];
    int count = (int)strlen(inputs);
    FUZZ_CHECK(count <= INPUTS_MAX && ways_count < WAYS_MAX);
    for (int i = 0; i < count; i++)
        edges[i] = input(inputs[i], i);
    char name[16];
    snprintf(name, sizeof(name), "way%d", ways_count);
    struct edge made = builder_add(&builder, op, name, edges, count, attrs, attrs_count);
    if (!builder_ok(&builder))
        fprintf(stderr, "%s: %s\n", op, builder.err->text);
    FUZZ_CHECK(builder_ok(&builder) && made.from->outputs_count <= OUTPUTS_MAX);
    ways[ways_count++] = (struct way){inputs, made.from->outputs_count, NULL};
}

/* Rows are added at the end: the first byte of the seeds counts them. */
static void images(void)
{
    way("DecodePng", "s", NO_ATTRS);
    way("DecodePng", "s", ATTRS(attr_int("channels", 1), attr_type("dtype", U16)));
    way("DecodeJpeg", "s", NO_ATTRS);
    way("DecodeJpeg", "s", ATTRS(attr_int("channels", 3), attr_int("ratio", 4)));
    way("DecodeGif", "s", NO_ATTRS);
    way("DecodeBmp", "s", NO_ATTRS);
    way("DecodeImage", "s", ATTRS(attr_type("dtype", F32)));
    way("DecodeImage", "s", ATTRS(attr_bool("expand_animations", false)));
    way("ExtractJpegShape", "s", NO_ATTRS);
}

static void numbers(void)
{
    static const int32_t types[] = {F32, F64, I32, I64};
    static const int csv[] = {F32, I64, STRING};
    for (int i = 0; i < ARRAY_LEN(types); i++)
        way("StringToNumber", "s", ATTRS(attr_type("out_type", types[i])));
    way("DecodeRaw", "s", ATTRS(attr_type("out_type", F32)));
    way("DecodeRaw", "v", ATTRS(attr_type("out_type", U16), attr_bool("little_endian", false)));
    way("DecodePaddedRaw", "vi", ATTRS(attr_type("out_type", I32)));
    way("DecodeCSV", "sFLT", ATTRS(attr_type_list("OUT_TYPE", csv, 3)));
    way("DecodeCSV", "vFLT",
        ATTRS(attr_type_list("OUT_TYPE", csv, 3), attr_bool("use_quote_delim", false)));
    way("Substr", "sii", NO_ATTRS);
    way("Substr", "sii", ATTRS(attr_string("unit", "UTF8_CHAR")));
    way("StringToHashBucketFast", "s", ATTRS(attr_int("num_buckets", 1000)));
    way("Fingerprint", "vT", NO_ATTRS);
}

static void texts(void)
{
    way("RegexFullMatch", "ss", NO_ATTRS);
    way("RegexReplace", "sss", NO_ATTRS);
    way("RegexReplace", "sss", ATTRS(attr_bool("replace_global", false)));
    way("StringSplit", "vs", NO_ATTRS);
    way("StringSplitV2", "vs", NO_ATTRS);
    way("StringSplitV2", "vs", ATTRS(attr_int("maxsplit", 1)));
    way("StringLower", "s", ATTRS(attr_string("encoding", "utf-8")));
    way("StringUpper", "s", ATTRS(attr_string("encoding", "utf-8")));
    way("StringLength", "s", ATTRS(attr_string("unit", "UTF8_CHAR")));
    way("StringStrip", "s", NO_ATTRS);
    way("EncodeBase64", "s", NO_ATTRS);
    way("DecodeBase64", "s", NO_ATTRS);
    static const char *const encodings[] = {"UTF-8", "UTF-16-BE", "UTF-32-BE", "US-ASCII",
                                            "ISO-8859-1"};
    static const char *const errors[] = {"replace", "strict", "ignore"};
    for (int i = 0; i < ARRAY_LEN(encodings); i++) {
        const char *error = errors[i % 3];
        way("UnicodeTranscode", "s",
            ATTRS(attr_string("input_encoding", encodings[i]),
                  attr_string("output_encoding", encodings[i % 3]),
                  attr_string("errors", error)));
        way("UnicodeDecodeWithOffsets", "v",
            ATTRS(attr_string("input_encoding", encodings[i]), attr_string("errors", error)));
    }
}

static void messages(void)
{
    static const int types[] = {F32, F64, I32, I64, STRING, BOOL, U8, F16, C64, QI8, VARIANT};
    for (int i = 0; i < ARRAY_LEN(types); i++)
        way("ParseTensor", "s", ATTRS(attr_type("out_type", types[i])));
    way("DecodeCompressed", "s", ATTRS(attr_string("compression_type", "ZLIB")));
    way("DecodeCompressed", "s", ATTRS(attr_string("compression_type", "GZIP")));
    way("DecodeJSONExample", "s", NO_ATTRS);
    way("DeserializeSparse", "v", ATTRS(attr_type("dtype", F32)));
    way("DeserializeSparse", "v", ATTRS(attr_type("dtype", STRING)));
    way("MergeSummary", "ss", ATTRS(attr_int("N", 2)));
    way("ReaderRestoreStateV2", "Rs", NO_ATTRS);
}

static void make_feeds(void)
{
    for (int i = 0; i < INPUTS_MAX; i++)
        for (int kind = 0; kind < 3; kind++) {
            char name[16];
            snprintf(name, sizeof(name), "%c%d", feed_letters[kind], i);
            feeds[i][kind] = builder_add(
                &builder, "Placeholder", name, NO_INPUTS,
                ATTRS(attr_type("dtype", feed_letters[kind] == 'i' ? I32 : STRING)));
        }
}

/* Looks up what a run of the way needs. */
static void prepare(int index)
{
    struct way *w = &ways[index];
    char feed[FEEDS_MAX][8], fetch[OUTPUTS_MAX][16], target[16];
    const char *feed_names[FEEDS_MAX], *fetch_names[OUTPUTS_MAX], *targets[] = {target};
    struct session_run run = {.feeds = feed_names,
                              .fetches = fetch_names,
                              .fetches_count = w->outputs,
                              .targets = targets,
                              .targets_count = 1,
                              .timeout_ms = TIMEOUT_MS};
    for (int i = 0; w->inputs[i]; i++) {
        if (!strchr(feed_letters, w->inputs[i]))
            continue;
        FUZZ_CHECK(run.feeds_count < FEEDS_MAX);
        snprintf(feed[run.feeds_count], sizeof(feed[0]), "%c%d", w->inputs[i], i);
        feed_names[run.feeds_count] = feed[run.feeds_count];
        run.feeds_count++;
    }
    snprintf(target, sizeof(target), "way%d", index);
    for (int i = 0; i < w->outputs; i++) {
        snprintf(fetch[i], sizeof(fetch[i]), "way%d:%d", index, i);
        fetch_names[i] = fetch[i];
    }
    struct error err;
    w->callable = session_prepare(session, &run, &err);
    if (!w->callable)
        fprintf(stderr, "way%d: %s\n", index, err.text);
    FUZZ_CHECK(w->callable);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    static struct error err;
    kernels_add(false);
    builder = (struct builder){.graph = graph_new(), .scope = "", .err = &err};
    make_feeds();
    images();
    numbers();
    texts();
    messages();
    struct session_options options = {.threads = 1, .memory_bytes_max = MEMORY};
    session = session_new(&options, &err);
    FUZZ_CHECK(session && session_extend_graph(session, builder.graph, &err));
    graph_free(builder.graph);
    for (int i = 0; i < ways_count; i++)
        prepare(i);
    return 0;
}

/* --- one input --- */

struct bytes {
    const uint8_t *data;
    size_t size;
};

/* Takes what is before the next cut, or all that is left. */
static struct bytes take(struct bytes *rest, bool last)
{
    struct bytes part = {rest->data, 0};
    while (part.size < rest->size && (last || rest->data[part.size] != 0xfe))
        part.size++;
    size_t used = part.size < rest->size ? part.size + 1 : part.size;
    rest->data += used;
    rest->size -= used;
    return part;
}

static void feed(char letter, bool last, struct bytes *rest, struct tensor *out)
{
    struct error err;
    bool list = letter == 'v';
    struct shape shape = list ? SHAPE(LIST) : SHAPE_SCALAR;
    FUZZ_CHECK(tensor_init(out, letter == 'i' ? I32 : STRING, &shape, &err));
    if (letter == 'i') {
        *(int32_t *)out->data = rest->size ? (int8_t)rest->data[0] : 0;
        rest->data += rest->size > 0;
        rest->size -= rest->size > 0;
        return;
    }
    for (int i = 0; i < (list ? LIST : 1); i++) {
        struct bytes part = take(rest, last && (!list || i == LIST - 1));
        tensor_set_string(out, i, (const char *)part.data, part.size);
    }
}

/* Strings by their bytes, numbers by theirs. */
static bool same(const struct tensor *a, const struct tensor *b)
{
    if (a->dtype != b->dtype || !shape_equal(&a->shape, &b->shape))
        return false;
    if (a->dtype == VARIANT || a->dtype == RESOURCE)
        return true;
    if (a->dtype != STRING)
        return !a->count || !memcmp(a->data, b->data, tensor_bytes(a));
    for (int64_t i = 0; i < a->count; i++) {
        const struct tensor_string *x = tensor_strings(a) + i, *y = tensor_strings(b) + i;
        if (x->size != y->size || (x->size && memcmp(x->data, y->data, x->size)))
            return false;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    const struct way *w = &ways[data[0] % ways_count];
    struct bytes rest = {data + 1, size - 1};
    struct tensor fed[FEEDS_MAX], out[2][OUTPUTS_MAX];
    int fed_count = 0, wanted = 0;
    for (const char *at = w->inputs; *at; at++)
        wanted += strchr(feed_letters, *at) != NULL;
    for (const char *at = w->inputs; *at; at++)
        if (strchr(feed_letters, *at)) {
            feed(*at, fed_count == wanted - 1, &rest, &fed[fed_count]);
            fed_count++;
        }
    struct error errs[2] = {{0}};
    bool ok[2];
    for (int i = 0; i < 2; i++)
        ok[i] = session_call(session, w->callable, fed, out[i], NULL, &errs[i]);
    FUZZ_CHECK(ok[0] == ok[1]);
    if (ok[0]) {
        for (int i = 0; i < w->outputs; i++) {
            FUZZ_CHECK(same(&out[0][i], &out[1][i]));
            tensor_release(&out[0][i]);
            tensor_release(&out[1][i]);
        }
    } else {
        FUZZ_CHECK(errs[0].code && errs[0].text[0] && errs[0].code == errs[1].code);
    }
    for (int i = 0; i < fed_count; i++)
        tensor_release(&fed[i]);
    return 0;
}
