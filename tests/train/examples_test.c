/*
 * examples_test.c - the shipped examples of texts and pictures train: shortened, on data made
 * here, their losses fall; and a run that is broken off and resumed ends with the same bits.
 */

#include <sys/stat.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/str.h"
#include "kernels/list.h"
#include "runtime/checkpoint.h"
#include "runtime/dataset/tokenizer.h"
#include "runtime/spec/spec.h"
#include "runtime/train/train.h"
#include "runtime/train/trained.h"
#include "tests/unit/folder.h"

static const struct spec *parse(struct arena *arena, const char *json)
{
    static bool added;
    struct error err;
    if (!added)
        kernels_add(false);
    added = true;
    const struct spec *spec = spec_parse(arena, json, strlen(json), &err);
    CHECK_OK(spec, &err);
    return spec;
}

/* Runs to the end; the first and the last loss of training. */
static void run(const struct train_options *options, double *first, double *last)
{
    struct error err;
    struct train_report report;
    struct train *train = train_open(options, &err);
    CHECK_OK(train, &err);
    *first = -1;
    do {
        CHECK_OK(train_next(train, &report, &err), &err);
        if (report.what == TRAIN_POINT) {
            *first = *first < 0 ? report.values[0] : *first;
            *last = report.values[0];
        }
    } while (report.what != TRAIN_ENDED);
    CHECK_INT(report.end, TRAIN_FINISHED);
    train_close(train);
}

static void check_learns(const char *json, const char *data, double part)
{
    double first, last;
    struct arena *arena = arena_new();
    const struct spec *spec = parse(arena, json);
    run(&(struct train_options){.spec = spec, .data = data, .threads = 1}, &first, &last);
    if (!(last < part * first))
        CHECK_STOP("%s: the loss went from %g to %g", spec->name, first, last);
    arena_free(arena);
}

/* --- the data --- */

/* A text that rhymes: what follows is easy to tell. */
static const char *make_text(void)
{
    static const char line[] = "the cat sat on the mat and the rat ran at the hat. ";
    mkdir(folder_path("text"), 0755);
    char *path = alloc_printf("%s/a.txt", folder_path("text"));
    FILE *file = fopen(path, "w");
    CHECK(file);
    for (int i = 0; i < 200; i++)
        CHECK(fputs(line, file) >= 0);
    CHECK_INT(fclose(file), 0);
    free(path);
    return folder_path("text");
}

/* Pictures of two classes, bright on the left or on the right, as CIFAR-10 has them. */
static const char *make_pictures(void)
{
    static const char *const names[] = {"data_batch_1.bin", "test_batch.bin"};
    mkdir(folder_path("pictures"), 0755);
    for (int part = 0; part < 2; part++) {
        char *path = alloc_printf("%s/%s", folder_path("pictures"), names[part]);
        FILE *file = fopen(path, "wb");
        CHECK(file);
        uint64_t random = (uint64_t)part + 1;
        for (int i = 0; i < (part ? 10 : 60); i++) {
            unsigned char record[3073] = {(unsigned char)(i % 2)};
            for (int p = 0; p < 3072; p++) {
                random = random * UINT64_C(6364136223846793005) + 1;
                bool top = p % 1024 < 512;
                record[1 + p] = (unsigned char)((random >> 58) + (top == (i % 2) ? 160 : 20));
            }
            CHECK_INT(fwrite(record, 1, sizeof(record), file), sizeof(record));
        }
        CHECK_INT(fclose(file), 0);
        free(path);
    }
    return folder_path("pictures");
}

/* --- learning --- */

TEST(lstm_learns_a_text)
{
    check_learns("{\"example\": \"shakespeare-lstm\", \"data\": {\"batch_size\": 4, "
                 "\"sequence_length\": 16, \"validation\": 0.05}, \"train\": {\"steps\": 40, "
                 "\"eval_every\": 0, \"optimizer\": {\"learning_rate\": 0.01}}}",
                 make_text(), 0.6);
}

TEST(gpt_learns_a_text)
{
    check_learns("{\"example\": \"shakespeare-gpt\", \"data\": {\"batch_size\": 2, "
                 "\"sequence_length\": 16, \"validation\": 0.05}, \"train\": {\"steps\": 16, "
                 "\"eval_every\": 0, \"optimizer\": {\"learning_rate\": 0.003}}}",
                 make_text(), 0.8);
}

TEST(word2vec_learns_which_words_are_neighbours)
{
    check_learns("{\"example\": \"word2vec\", \"data\": {\"batch_size\": 64, \"skip_gram\": "
                 "{\"subsample\": 0}}, \"train\": {\"steps\": 100, \"eval_every\": 0, "
                 "\"optimizer\": {\"learning_rate\": 0.03}}}",
                 make_text(), 0.9);
}

TEST(resnet_learns_pictures)
{
    check_learns("{\"example\": \"cifar-resnet20\", \"data\": {\"batch_size\": 8, \"augment\": "
                 "[{\"name\": \"RandomCrop\", \"height\": 32, \"width\": 32, \"padding\": 4}, "
                 "{\"name\": \"RandomFlip\", \"mode\": \"horizontal\"}]}, \"train\": "
                 "{\"steps\": 20, \"eval_every\": 0, \"optimizer\": {\"learning_rate\": "
                 "0.05}}}",
                 make_pictures(), 0.7);
}

/* --- resuming --- */

/* Trains `steps` into a folder; the checkpoint afterwards. */
static struct checkpoint train_to(const char *json, const char *data, const char *folder,
                                  int64_t steps, int threads, bool resume)
{
    double first, last;
    struct error err;
    struct checkpoint checkpoint;
    struct arena *arena = arena_new();
    run(&(struct train_options){.spec = parse(arena, json),
                                .data = data,
                                .checkpoints = folder,
                                .steps = steps,
                                .threads = threads,
                                .resume = resume},
        &first, &last);
    CHECK_OK(checkpoint_load(folder, &checkpoint, &err), &err);
    CHECK_INT(checkpoint.step, steps);
    arena_free(arena);
    return checkpoint;
}

static void check_resumes(const char *json, const char *data, const char *name)
{
    char whole[40], broken[40];
    snprintf(whole, sizeof(whole), "%s-whole", name);
    snprintf(broken, sizeof(broken), "%s-broken", name);
    struct checkpoint a = train_to(json, data, folder_path(whole), 7, 1, false);
    struct checkpoint early = train_to(json, data, folder_path(broken), 3, 1, false);
    struct checkpoint b = train_to(json, data, folder_path(broken), 7, 1, true);
    CHECK_INT(a.items_count, b.items_count);
    int same_early = 0;
    for (int i = 0; i < a.items_count; i++) {
        const struct tensor *x = &a.items[i].tensor, *y = &b.items[i].tensor;
        const struct tensor *z = &early.items[i].tensor;
        size_t size = (size_t)x->count * dtype_size(x->dtype);
        CHECK_TEXT(a.items[i].name, b.items[i].name);
        if (memcmp(x->data, y->data, size) != 0)
            CHECK_STOP("%s differs after resuming", a.items[i].name);
        same_early += !memcmp(x->data, z->data, size);
    }
    CHECK(same_early < a.items_count / 2); /* there was something to learn */
    checkpoint_release(&a);
    checkpoint_release(&b);
    checkpoint_release(&early);
}

TEST(an_augmented_run_is_resumed_bit_for_bit)
{
    check_resumes(
        "{\"name\": \"r\", \"seed\": 4, \"model\": {\"layers\": [{\"layer\": \"Conv2D\", "
        "\"filters\": 4, \"kernel_size\": 3}, {\"layer\": \"GlobalAveragePooling2D\"}, "
        "{\"layer\": \"Dense\", \"units\": 10}]}, \"data\": {\"dataset\": \"d\", "
        "\"batch_size\": 13, \"augment\": [\"RandomFlip\", {\"name\": \"RandomCrop\", "
        "\"height\": 30, \"width\": 30}, {\"name\": \"RandomTranslation\", "
        "\"height_factor\": 0.1, \"width_factor\": 0.1}, {\"name\": \"RandomBrightness\", "
        "\"factor\": 0.2}]}, \"train\": {\"steps\": 7}}",
        make_pictures(), "pictures");
}

TEST(a_run_on_text_is_resumed_bit_for_bit)
{
    check_resumes(
        "{\"name\": \"r\", \"seed\": 4, \"model\": {\"layers\": [{\"layer\": \"Embedding\", "
        "\"input_dim\": 270, \"output_dim\": 8}, {\"layer\": \"LSTM\", \"units\": 8, "
        "\"return_sequences\": true}, {\"layer\": \"Dense\", \"units\": 270}]}, \"data\": "
        "{\"dataset\": \"d\", \"batch_size\": 5, \"sequence_length\": 7, \"tokenizer\": "
        "{\"bpe\": 270}, \"validation\": 0.1}, \"train\": {\"steps\": 7, \"optimizer\": "
        "{\"name\": \"Adam\", \"global_clipnorm\": 1.0}}}",
        make_text(), "text");
}

TEST(a_run_on_pairs_of_words_is_resumed_bit_for_bit)
{
    check_resumes("{\"example\": \"word2vec\", \"data\": {\"batch_size\": 16, \"skip_gram\": "
                  "{\"subsample\": 0.1}}, \"train\": {\"steps\": 7, \"eval_every\": 0}}",
                  make_text(), "words");
}

/* What was trained knows what its numbers stand for. */
TEST(a_checkpoint_has_the_vocabulary)
{
    static const char json[] =
        "{\"name\": \"v\", \"model\": {\"layers\": [{\"layer\": \"Embedding\", \"input_dim\": "
        "20, \"output_dim\": 4}, {\"layer\": \"Dense\", \"units\": 20}]}, \"data\": "
        "{\"dataset\": \"d\", \"batch_size\": 5, \"sequence_length\": 7}}";
    struct error err;
    struct trained trained;
    struct checkpoint checkpoint =
        train_to(json, make_text(), folder_path("vocabulary"), 2, 1, false);
    checkpoint_release(&checkpoint);
    CHECK_OK(trained_open(folder_path("vocabulary"), NULL, &trained, &err), &err);
    const char *vocabulary = trained.dataset.vocabulary;
    CHECK(vocabulary);
    struct tokenizer *tokenizer = tokenizer_read(vocabulary, strlen(vocabulary), &err);
    CHECK_OK(tokenizer, &err);
    struct tokenizer_ids ids = {0};
    struct str text = {0};
    CHECK_OK(tokenizer_encode(tokenizer, "the cat", 7, &ids, &err), &err);
    tokenizer_decode(tokenizer, ids.ids, ids.count, &text);
    CHECK_TEXT(str_text(&text), "the cat");
    tokenizer_ids_release(&ids);
    str_release(&text);
    tokenizer_free(tokenizer);
    trained_close(&trained);
}
