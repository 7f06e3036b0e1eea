/* csv_test.c - datasets of tables: quoting, types, vocabularies, and what a wrong cell is told
 * as. */

#include "base/alloc.h"
#include "base/str.h"
#include "runtime/dataset/dataset_batch.h"
#include "runtime/io/csv.h"
#include "runtime/io/file.h"
#include "runtime/io/stream.h"
#include "runtime/spec/spec.h"
#include "tests/unit/folder.h"

static void check_refused(const char *folder, const struct spec_data *data, const char *pointer,
                          const char *text)
{
    struct dataset dataset;
    struct error err = {0};
    CHECK(!dataset_open(folder_path(folder), data, 1, &dataset, &err));
    if (!strstr(err.text, text))
        CHECK_STOP("%s, not: %s", err.text, text);
    CHECK_TEXT(err.pointer, pointer);
}

/* Joins the rows' cells with | and the rows with newlines; an error ends it. */
static void check_cells(const char *text, const char *wanted)
{
    struct error err;
    struct str got = {0};
    const struct csv_cell *cells;
    int count;
    folder_put_text("cells", "x.csv", text);
    char *path = alloc_printf("%s/x.csv", folder_path("cells"));
    struct csv *csv = csv_open(path, ',', &err);
    CHECK_OK(csv, &err);
    while (true) {
        if (!csv_next(csv, &cells, &count, &err)) {
            str_printf(&got, "!%s\n", err.text + strlen(path) + 2);
            continue;
        }
        if (!count)
            break;
        str_printf(&got, "%lld", (long long)csv_line(csv));
        for (int i = 0; i < count; i++) {
            CHECK_INT(strlen(cells[i].text), cells[i].size);
            str_printf(&got, "|%s", cells[i].text);
        }
        str_add_char(&got, '\n');
    }
    if (strcmp(str_text(&got), wanted) != 0)
        CHECK_STOP("%s, not: %s", str_text(&got), wanted);
    csv_close(csv);
    free(path);
    str_release(&got);
}

TEST(csv_splits_rows)
{
    check_cells("", "");
    check_cells("a,b\n1,2\n", "1|a|b\n2|1|2\n");
    check_cells("\xef\xbb\xbf"
                "a,b\r\n\r\n1,\n,",
                "1|a|b\n3|1|\n4||\n");
    check_cells("\"a,\"\"b\"\"\nc\",d\ne\n", "1|a,\"b\"\nc|d\n3|e\n");
    check_cells("\"\"\na \"b\" c\n", "1|\n2|a \"b\" c\n");
    check_cells("a,\"b\"c,d\ne,f\n",
                "!line 1, cell 2: there is more behind its quotes\n2|e|f\n");
    check_cells("a\n\"b,c\nd\n", "1|a\n!line 2: the quote that it begins has no end\n");
}

TEST(csv_finds_columns)
{
    folder_put_text(
        "houses", "train.csv",
        "rooms,\"city, old\",area,price\n3,Bern,70.5,100\n2,Aarau,50,80\n4,Bern,90,200\n");
    folder_put_text("houses", "test.csv", "rooms,\"city, old\",area,price\n1,Chur,1e2,90\n");
    struct dataset dataset;
    struct error err;
    CHECK_OK(dataset_open(folder_path("houses"), NULL, 1, &dataset, &err), &err);
    const struct model_data *data = &dataset.feeds.data;
    CHECK_INT(data->features_count, 2);
    CHECK_TEXT(data->features[0].name, "numbers");
    CHECK(shape_equal(&data->features[0].shape, &SHAPE(2)));
    CHECK_TEXT(data->features[1].name, "city__old");
    CHECK_INT(data->features[1].dtype, I32);
    CHECK_TEXT(data->target.name, "price");
    CHECK_INT(data->target.dtype, I32);
    CHECK_INT(data->classes, 201);
    CHECK_INT(dataset.columns[1].classes, 3);
    CHECK_TEXT(dataset.columns[1].vocabulary[0], "[UNK]");
    CHECK_TEXT(dataset.columns[1].vocabulary[1], "Aarau");
    struct dataset_batch batch;
    CHECK_OK(dataset_batch_read(&batch, &dataset, &dataset.train, 0, 3, &err), &err);
    CHECK(tensor_f32(&batch.feeds[0])[0] == 3);
    CHECK(tensor_f32(&batch.feeds[0])[1] == 70.5f);
    CHECK_INT(tensor_i32(&batch.feeds[1])[0], 2);
    CHECK_INT(tensor_i32(&batch.feeds[1])[1], 1);
    CHECK_INT(tensor_i32(&batch.feeds[2])[2], 200);
    dataset_batch_release(&batch);
    CHECK_OK(dataset_batch_read(&batch, &dataset, &dataset.test, 0, 1, &err), &err);
    CHECK(tensor_f32(&batch.feeds[0])[1] == 100);
    CHECK_INT(tensor_i32(&batch.feeds[1])[0], 0); /* Chur is none of the words */
    dataset_batch_release(&batch);
    dataset_close(&dataset);
}

static const struct spec_data *columns(struct spec_column *column, const char *target)
{
    static struct spec_data data;
    data = (struct spec_data){.columns = column, .columns_count = 1, .target = target};
    return &data;
}

/* What the spec says goes before what the cells look like. */
TEST(csv_does_as_the_spec_says)
{
    folder_put_text("spec", "data.csv", "a,b,label\n1,2.5,x\n2,,y\n3,?,x\n");
    check_refused("spec", NULL, "",
                  "data.csv: line 3: column \"b\": a value is missing (\"default\"");
    struct spec_column b = {.name = "b",
                            .rank = -1,
                            .initial = "-1",
                            .has_scale = true,
                            .scale = 2,
                            .alone = true,
                            .pointer = "/data/columns/b"};
    struct dataset dataset;
    struct error err;
    CHECK_OK(dataset_open(folder_path("spec"), columns(&b, NULL), 1, &dataset, &err), &err);
    CHECK_TEXT(dataset.feeds.data.features[0].name, "numbers");
    CHECK_TEXT(dataset.feeds.data.features[1].name, "b");
    CHECK(shape_equal(&dataset.feeds.data.features[1].shape, &SHAPE(1)));
    CHECK_INT(dataset.feeds.data.classes, 2); /* a target has no unknown word */
    struct dataset_batch batch;
    CHECK_OK(dataset_batch_read(&batch, &dataset, &dataset.train, 0, 3, &err), &err);
    CHECK(tensor_f32(&batch.feeds[1])[0] == 5);
    CHECK(tensor_f32(&batch.feeds[1])[2] == -2);
    CHECK_INT(tensor_i32(&batch.feeds[2])[1], 1);
    dataset_batch_release(&batch);
    dataset_close(&dataset);

    const char *const named[] = {"a"};
    const struct spec_data one = {.features = named, .features_count = 1};
    CHECK_OK(dataset_open(folder_path("spec"), &one, 1, &dataset, &err), &err);
    CHECK_INT(dataset.feeds.count, 2);
    CHECK_TEXT(dataset.feeds.data.features[0].name, "a");
    dataset_close(&dataset);

    b = (struct spec_column){
        .name = "a", .type = COLUMN_CATEGORICAL, .rank = -1, .pointer = "p"};
    const struct spec_data two = {
        .features = named, .features_count = 1, .columns = &b, .columns_count = 1};
    CHECK_OK(dataset_open(folder_path("spec"), &two, 1, &dataset, &err), &err);
    CHECK_INT(dataset.feeds.data.features[0].dtype, I32);
    CHECK_INT(dataset.columns[0].classes, 4);
    dataset_close(&dataset);

    b.type = COLUMN_IMAGE;
    check_refused("spec", columns(&b, NULL), "p",
                  "column \"a\" holds text, no files of images");
    b.type = COLUMN_INTEGER;
    b.initial = "1.5";
    check_refused("spec", columns(&b, NULL), "p", "column \"a\" has a default");
    b = (struct spec_column){.name = "c", .rank = -1, .pointer = "/data/columns/c"};
    struct spec_data nowhere = two;
    nowhere.columns = &b;
    check_refused("spec", &nowhere, "/data/columns/c", "the csv data has no column \"c\"");
    check_refused("spec", &(struct spec_data){.target = "c"}, "/data/target",
                  "no column \"c\"");
}

/* A cell that is none names file, line and column; as many as the spec says are passed over. */
TEST(csv_names_the_cell_that_is_wrong)
{
    struct str text = {0};
    str_add(&text, "x,y\n");
    for (int i = 0; i < 1200; i++)
        str_printf(&text, "%d,%d\n", i, i % 2);
    str_add(&text, "seven,1\n8\n9,1,2\n10,0.5\n11,\"a\"b\n");
    folder_put_text("wrong", "train.csv", str_text(&text));
    check_refused("wrong", NULL, "", "line 1202: column \"x\": \"seven\" is no number");
    struct spec_data data = {.skip_damaged = 4};
    check_refused("wrong", &data, "/data/skip_damaged",
                  "more than the 4 damaged records that may be skipped, the last: ");
    data.skip_damaged = 5;
    struct dataset dataset;
    struct error err;
    CHECK_OK(dataset_open(folder_path("wrong"), &data, 1, &dataset, &err), &err);
    CHECK_INT(dataset.skipped, 5);
    CHECK_INT(dataset.train.count, 1200);
    dataset_close(&dataset);
    str_release(&text);
    folder_put_text("classes", "train.csv", "x,y\n1,a\n2,b\n");
    folder_put_text("classes", "test.csv", "x,y\n1,c\n");
    check_refused("classes", NULL, "",
                  "test.csv: line 2: column \"y\": \"c\" is no class of the part to train on");
    folder_put_text("twice", "train.csv", "x,x\n1,2\n");
    check_refused("twice", NULL, "", "line 1: columns 1 and 2 are both \"x\"");
    folder_put_text("other", "train.csv", "x,y\n1,2\n");
    folder_put_text("other", "test.csv", "x,z\n1,2\n");
    check_refused("other", NULL, "", "test.csv: line 1: column 2 is \"z\", wanted: \"y\"");
    folder_put_text("bare", "train.csv", "x,y\n");
    check_refused("bare", NULL, "/data/columns/x", "column \"x\" is empty in all");
    folder_put_text("hole", "train.csv", "x,y\n,1\n,2\n");
    check_refused("hole", NULL, "/data/columns/x", "column \"x\" is empty in all");
    folder_put_text("none", "train.csv", "");
    check_refused("none", NULL, "", "train.csv holds no examples");
}

/* Without a header columns have numbers; tabs part the cells of .tsv. */
TEST(csv_reads_tables_without_names)
{
    folder_put_text("plain", "train.tsv", "1\t2\t0\n3\t4\t1\n");
    struct dataset dataset;
    struct error err;
    CHECK_OK(dataset_open(folder_path("plain"), NULL, 1, &dataset, &err), &err);
    CHECK_INT(dataset.train.count, 2);
    CHECK(shape_equal(&dataset.feeds.data.features[0].shape, &SHAPE(2)));
    CHECK_TEXT(dataset.feeds.data.target.name, "column_3");
    CHECK(!dataset_eval(&dataset));
    dataset_close(&dataset);
}

/* --- compressed files that are damaged in the middle --- */

/* Rows that do not compress well, deflated; what is behind the first half is damaged. */
static void put_damaged(const char *path)
{
    struct error err;
    struct str text = {0}, bytes = {0};
    uint32_t number = 1;
    str_add(&text, "a,b\n");
    for (int i = 0; i < 100000; i++) {
        number = number * 1664525 + 1013904223;
        str_printf(&text, "%u,%u\n", number, number >> 7);
    }
    struct stream_writer *writer = stream_create(path, STREAM_GZIP, &err);
    CHECK_OK(writer, &err);
    CHECK_OK(stream_write(writer, text.data, text.size, &err), &err);
    CHECK_OK(stream_finish(writer, &err), &err);
    CHECK_OK(file_read(path, 1 << 24, &bytes, &err), &err);
    memset(bytes.data + bytes.size / 2, 0xff, 1000);
    CHECK_OK(file_write(path, bytes.data, bytes.size, &err), &err);
    str_release(&text);
    str_release(&bytes);
}

TEST(csv_ends_where_what_is_compressed_is_damaged)
{
    struct error err;
    const struct csv_cell *cells;
    int count = 1, failed = 0, rows = 0;
    mkdir(folder_path("damaged"), 0755);
    put_damaged(folder_path("damaged/train.csv.gz"));
    struct csv *csv = csv_open(folder_path("damaged/train.csv.gz"), ',', &err);
    CHECK_OK(csv, &err);
    while (count) {
        if (csv_next(csv, &cells, &count, &err)) {
            rows++;
            continue;
        }
        CHECK_INT(err.code, DATA_LOSS);
        CHECK_INT(++failed, 1);
        count = 1;
    }
    CHECK_INT(failed, 1);
    CHECK(rows > 1000 && rows < 100000);
    csv_close(csv);

    struct dataset dataset;
    CHECK(!dataset_open(folder_path("damaged"), NULL, 1, &dataset, &err));
    CHECK(strstr(err.text, "train.csv.gz"));
    CHECK_OK(dataset_open(folder_path("damaged"), &(struct spec_data){.skip_damaged = -1}, 1,
                          &dataset, &err),
             &err);
    CHECK(dataset.skipped > 0 && dataset.train.count > 1000);
    dataset_close(&dataset);
}
