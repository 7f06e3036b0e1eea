/* dataset.c - trainyard dataset: puts datasets where jobs find them. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "cli/change.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/dataset.h"
#include "cli/digits.h"
#include "cli/options.h"
#include "cli/tables.h"

#define COPY_BYTES (1 << 20)
#define BUILDING_FOLDERS 16 /* open at a time, when they are removed */
#define MAKE_COUNT_MAX 10000000

static const char usage[] =
    "dataset add NAME [--from FOLDER] [--dir DIR]   copy, make or download "
    "into DIR/datasets\n"
    "       trainyard dataset make digits|linear|census|blobs FOLDER  make data into FOLDER\n"
    "       trainyard dataset show NAME|FOLDER [--spec FILE]          its columns and words\n"
    "       trainyard dataset list [--dir DIR]                        what there is\n"
    "       trainyard dataset upload NAME --from FOLDER [--dir DIR]   send the files to a "
    "server\n"
    "       trainyard dataset remove NAME [--dir DIR]                 remove one from a server";

struct dataset_options {
    const char *dir;
    const char *from;
    const char *url;
    const char *spec;
    int64_t train_count;
    int64_t test_count;
    int64_t seed;
    bool json;
};

static bool name_check(const char *name, struct error *err)
{
    size_t size = strlen(name);
    bool ok = size > 0 && size <= LIMIT_NAME_BYTES && name[0] != '.';
    for (size_t i = 0; ok && i < size; i++)
        ok = strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-",
                    name[i]);
    return ok ||
           fail(err, INVALID,
                "'%.60s' is no name for a dataset: letters, digits, '.', '_' and '-', at most "
                "%d, the first no '.'",
                name, LIMIT_NAME_BYTES);
}

static bool folder_make(const char *path, struct error *err)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return true;
    return error_errno(err, errno == ENOSPC ? EXHAUSTED : DENIED, "cannot create the folder %s",
                       path);
}

static bool file_copy(const char *from, const char *to, struct error *err)
{
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool ok = in >= 0 && out >= 0;
    if (!ok)
        error_errno(err, in < 0 ? NOT_FOUND : DENIED, "cannot %s %s",
                    in < 0 ? "read" : "create", in < 0 ? from : to);
    char *buffer = alloc_bytes(COPY_BYTES);
    ssize_t count = 0;
    while (ok && (count = read(in, buffer, COPY_BYTES)) > 0) {
        for (ssize_t done = 0, part; ok && done < count; done += part) {
            part = write(out, buffer + done, (size_t)(count - done));
            if (part < 0)
                ok = error_errno(err, EXHAUSTED, "cannot write %s", to);
        }
    }
    if (ok && count < 0)
        ok = error_errno(err, UNKNOWN, "cannot read %s", from);
    if (ok && fsync(out) < 0)
        ok = error_errno(err, EXHAUSTED, "cannot write %s", to);
    if (in >= 0)
        close(in);
    if (out >= 0 && close(out) < 0 && ok)
        ok = error_errno(err, EXHAUSTED, "cannot write %s", to);
    free(buffer);
    return ok;
}

static void print_dataset(const char *name, const char *folder,
                          const struct dataset_files *files)
{
    printf("%-20s %-8s ", name, files->format);
    if (files->columns)
        printf("%8lld to train, %8lld to test", (long long)files->train_count,
               (long long)files->test_count);
    else
        printf("%-31d files", files->files_count);
    if (files->validation_count)
        printf(", %lld for validation", (long long)files->validation_count);
    printf("   %s\n", folder);
}

/* --- the makers --- */

static const struct maker {
    const char *name;
    int64_t train_count, test_count; /* when nobody says how many */
    bool (*write)(const char *folder, int64_t train_count, int64_t test_count, uint64_t seed,
                  struct error *err);
} makers[] = {{"digits", 20000, 4000, digits_write},
              {"linear", 2000, 500, tables_linear},
              {"census", 30000, 6000, tables_census},
              {"blobs", 3000, 600, tables_blobs}};

static const struct maker *find_maker(const char *what)
{
    for (int i = 0; i < ARRAY_LEN(makers); i++) {
        if (!strcmp(makers[i].name, what))
            return &makers[i];
    }
    return NULL;
}

/* Makes as many examples as the options or the maker say into `folder`. */
static bool make_into(const struct maker *maker, const struct dataset_options *options,
                      const char *folder, struct error *err)
{
    const int64_t counts[] = {
        options->train_count >= 0 ? options->train_count : maker->train_count,
        options->test_count >= 0 ? options->test_count : maker->test_count};
    for (int i = 0; i < 2; i++) {
        if (counts[i] < 1 || counts[i] > MAKE_COUNT_MAX)
            return fail(err, INVALID, "--%s is %lld; it must be from 1 to %d",
                        i ? "test" : "train", (long long)counts[i], MAKE_COUNT_MAX);
    }
    fprintf(stderr, "making %lld examples ...\n", (long long)(counts[0] + counts[1]));
    return maker->write(folder, counts[0], counts[1], (uint64_t)options->seed, err);
}

/* --- add --- */

/* Makes the folders that a file's path names from `start` on. */
static bool folders_make(char *path, size_t start, struct error *err)
{
    bool ok = true;
    for (char *slash = strchr(path + start, '/'); ok && slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        ok = folder_make(path, err);
        *slash = '/';
    }
    return ok;
}

static bool copy_into(const char *from, const char *to, struct error *err)
{
    struct dataset_files files = {0};
    bool ok = dataset_files_describe(from, &files, err);
    for (int i = 0; ok && i < files.files_count; i++) {
        char *source = alloc_printf("%s/%s", from, files.files[i].name);
        char *target = alloc_printf("%s/%s", to, files.files[i].name);
        ok = folders_make(target, strlen(to) + 1, err) && file_copy(source, target, err);
        free(source);
        free(target);
    }
    dataset_files_release(&files);
    return ok;
}

/*
 * Brings the files into `folder`, a hidden one beside the final place.  After a failed download
 * it stays, so that the next try goes on where this one ended.
 */
static bool files_bring(const struct dataset_options *options, const char *name,
                        const char *folder, struct error *err)
{
    if (options->from)
        return copy_into(options->from, folder, err);
    const struct maker *maker = find_maker(name);
    if (maker)
        return make_into(maker, options, folder, err);
    const struct dataset_source *source = dataset_fetch_find(name);
    if (source)
        return dataset_fetch(source, options->url, folder, err);
    return fail(
        err, INVALID,
        "'%s' is neither made here (digits, linear, census, blobs) nor downloaded (mnist, "
        "fashion-mnist, cifar10): name the folder that holds its files with --from FOLDER",
        name);
}

/* Moves a complete folder to its place. */
static bool folder_publish(const char *name, const char *building, const char *folder,
                           const struct dataset_files *files, struct error *err)
{
    struct dataset_files old;
    struct error ignored;
    if (dataset_files_read(folder, &old, &ignored)) {
        bool same = dataset_files_same(&old, files);
        dataset_files_release(&old);
        return same ||
               fail(err, EXISTS, "another dataset '%s' is there already: remove %s first", name,
                    folder);
    }
    if (!dataset_files_write(building, name, files, err))
        return false;
    return dataset_files_publish(building, folder, err);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

static void building_remove(const char *building)
{
    nftw(building, remove_one, BUILDING_FOLDERS, FTW_DEPTH | FTW_PHYS);
}

static bool dataset_add(const struct dataset_options *options, const char *name,
                        struct error *err)
{
    if (!name_check(name, err))
        return false;
    char *parent = alloc_printf("%s/datasets", options->dir);
    char *folder = alloc_printf("%s/%s", parent, name);
    char *building = alloc_printf("%s/.%s.building", parent, name);
    struct dataset_files files = {0};
    bool is_download = !options->from && dataset_fetch_find(name);
    bool ok = true;
    if (!options->from && dataset_files_read(folder, &files, err)) {
        printf("%s is there already\n", name);
        goto out;
    }
    ok = folder_make(options->dir, err) && folder_make(parent, err) &&
         folder_make(building, err) && files_bring(options, name, building, err) &&
         dataset_files_describe(building, &files, err) &&
         folder_publish(name, building, folder, &files, err);
    if (ok || !is_download)
        building_remove(building);
    else
        rmdir(building); /* only when nothing has come yet */
out:
    if (ok)
        print_dataset(name, folder, &files);
    dataset_files_release(&files);
    free(building);
    free(folder);
    free(parent);
    return ok;
}

/* --- make --- */

/* Moves what was made to its place, in the place of what is there of the same names. */
static bool files_publish(const char *what, const char *building, const char *folder,
                          const struct dataset_files *files, struct error *err)
{
    bool ok = dataset_files_write(building, what, files, err);
    for (int i = 0; ok && i <= files->files_count; i++) {
        /* The description comes last. */
        const char *name = i < files->files_count ? files->files[i].name : "dataset.json";
        char *from = alloc_printf("%s/%s", building, name);
        char *to = alloc_printf("%s/%s", folder, name);
        if (rename(from, to) != 0)
            ok = error_errno(err, UNKNOWN, "cannot move %s to %s", from, to);
        free(from);
        free(to);
    }
    return ok;
}

static bool dataset_make(const struct dataset_options *options, const char *what,
                         const char *folder, struct error *err)
{
    const struct maker *maker = find_maker(what);
    if (!maker)
        return fail(err, INVALID,
                    "'%.60s' cannot be made; there are: digits, linear, census, blobs", what);
    struct dataset_files files = {0};
    char *building = alloc_printf("%s/.making", folder);
    bool ok = folder_make(folder, err) && folder_make(building, err) &&
              make_into(maker, options, building, err) &&
              dataset_files_describe(building, &files, err) &&
              files_publish(what, building, folder, &files, err);
    building_remove(building);
    free(building);
    if (ok)
        print_dataset(what, folder, &files);
    dataset_files_release(&files);
    return ok;
}

/* --- show --- */

/* Becomes the program that reads data: a name is one of DIR's datasets, else a folder. */
static bool dataset_show(const struct dataset_options *options, const char *name,
                         struct error *err)
{
    char path[PATH_MAX];
    if (!dataset_task(path, err))
        return false;
    char *folder = alloc_printf("%s/datasets/%s", options->dir, name);
    bool known = access(folder, F_OK) == 0;
    const char *args[8] = {path, "dataset", known ? folder : name};
    int count = 3;
    if (options->spec) {
        args[count++] = "--spec";
        args[count++] = options->spec;
    }
    if (options->json)
        args[count++] = "--json";
    execv(path, (char *const *)args);
    free(folder);
    return error_errno(err, NOT_FOUND, "cannot start %s", path);
}

/* --- list --- */

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* One as the API tells it, without its columns and files, and where it is. */
static json_t *dataset_json(const char *name, const char *folder,
                            const struct dataset_files *files)
{
    json_int_t size = 0;
    for (int i = 0; i < files->files_count; i++)
        size += files->files[i].bytes;
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:i, s:s}", "name", name, "format",
                     files->format, "train", (json_int_t)files->train_count, "validation",
                     (json_int_t)files->validation_count, "test", (json_int_t)files->test_count,
                     "size", size, "files_count", files->files_count, "folder", folder);
}

static bool dataset_list(const struct dataset_options *options, struct error *err)
{
    json_t *items = json_array();
    char *parent = alloc_printf("%s/datasets", options->dir);
    struct dirent **entries = NULL;
    int count = scandir(parent, &entries, NULL, compare_names), listed = 0;
    bool ok =
        count >= 0 || errno == ENOENT || error_errno(err, DENIED, "cannot read %s", parent);
    for (int i = 0; i < count; i++) {
        char *folder = alloc_printf("%s/%s", parent, entries[i]->d_name);
        struct dataset_files files;
        struct error why;
        if (entries[i]->d_name[0] == '.') {
            /* the folder itself, and what is not complete */
        } else if (dataset_files_read(folder, &files, &why)) {
            if (options->json)
                json_array_append_new(items, dataset_json(entries[i]->d_name, folder, &files));
            else
                print_dataset(entries[i]->d_name, folder, &files);
            dataset_files_release(&files);
            listed++;
        } else if (options->json) {
            json_array_append_new(
                items, json_pack("{s:s, s:s}", "name", entries[i]->d_name, "error", why.text));
        } else {
            printf("%-20s %s\n", entries[i]->d_name, why.text);
            listed++;
        }
        free(folder);
        free(entries[i]);
    }
    free(entries);
    if (ok && options->json)
        change_print(json_pack("{s:O}", "items", items));
    else if (ok && !listed)
        printf("no datasets in %s; `trainyard dataset add mnist --dir %s` downloads one\n",
               parent, options->dir);
    json_decref(items);
    free(parent);
    return ok;
}

/* Whether commands speak to a server that is not on this machine. */
static bool is_elsewhere(void)
{
    struct error none;
    struct client *client = client_open(NULL, &none);
    bool elsewhere = client && !client_is_local(client);
    client_close(client);
    return elsewhere;
}

int dataset_main(int argc, char **argv)
{
    const char *dir = getenv("TRAINYARD_DIR");
    struct dataset_options options = {.train_count = -1, .test_count = -1, .seed = 42};
    const struct option_row rows[] = {
        {"dir", OPTION_TEXT, &options.dir, "the server's folder ($TRAINYARD_DIR, or this one)"},
        {"from", OPTION_TEXT, &options.from, "add, upload: the folder that holds the files"},
        {"url", OPTION_TEXT, &options.url,
         "add: download from here (https, or http on loopback)"},
        {"train", OPTION_NUMBER, &options.train_count, "make: examples to train on"},
        {"test", OPTION_NUMBER, &options.test_count, "make: examples to test on"},
        {"seed", OPTION_NUMBER, &options.seed, "make: another seed, other examples (42)"},
        {"spec", OPTION_TEXT, &options.spec, "show: a job spec that says how to read it"},
        {"json", OPTION_FLAG, &options.json, "show and list: as JSON"},
        {0}};
    struct options_words words;
    struct error err = {0};
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 0, 3, &words, &err))
        return cli_usage(usage, rows, &err);
    if (sodium_init() < 0) {
        fail(&err, INTERNAL, "cannot start libsodium");
        return cli_fail(&err);
    }
    bool ok;
    const char *verb = words.count ? words.word[0] : "", *given = options.dir;
    if (!given)
        options.dir = dir && dir[0] ? dir : ".";
    if (!strcmp(verb, "add") && words.count == 2) {
        ok = dataset_add(&options, words.word[1], &err);
    } else if (!strcmp(verb, "make") && words.count == 3) {
        ok = dataset_make(&options, words.word[1], words.word[2], &err);
    } else if (!strcmp(verb, "show") && words.count == 2) {
        bool there = !given && access(words.word[1], F_OK) != 0 && is_elsewhere();
        ok = there ? dataset_upload_show(words.word[1], options.json, &err)
                   : dataset_show(&options, words.word[1], &err);
    } else if (!strcmp(verb, "list") && words.count == 1) {
        ok = !given && is_elsewhere() ? dataset_upload_list(options.json, &err)
                                      : dataset_list(&options, &err);
    } else if (!strcmp(verb, "upload") && words.count == 2) {
        ok = name_check(words.word[1], &err) &&
             dataset_upload(given, words.word[1], options.from, &err);
    } else if (!strcmp(verb, "remove") && words.count == 2) {
        ok = dataset_upload_remove(given, words.word[1], &err);
    } else {
        fail(&err, INVALID,
             "say what to do: add NAME, upload NAME, make WHAT FOLDER, show NAME, list, or "
             "remove NAME");
        return cli_usage(usage, rows, &err);
    }
    return ok ? CLI_OK : cli_fail(&err);
}
