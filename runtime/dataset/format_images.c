/*
 * format_images.c - folders of image files: train/CLASS/ with files and, if there are any,
 * validation/CLASS/ and test/CLASS/; or CLASS/ alone, all to train on.
 *
 * Classes are the folders of train/, sorted by name.  Every image is decoded when the dataset
 * is opened, by several threads: what is damaged is known before the first step.  Where the
 * images would take more memory than there is for them they are read again when asked for.
 */

#include <dirent.h>
#include <errno.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/dataset/format.h"
#include "runtime/dataset/images.h"
#include "runtime/spec/spec.h"

/* --- what there is --- */

static bool has_ending(const char *name)
{
    static const char *const endings[] = {"jpg", "jpeg", "png", "bmp", "gif"};
    const char *dot = strrchr(name, '.');
    for (int i = 0; dot && name[0] != '.' && i < ARRAY_LEN(endings); i++)
        if (!strcasecmp(dot + 1, endings[i]))
            return true;
    return false;
}

static int is_image(const struct dirent *entry)
{
    return has_ending(entry->d_name);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static char *join(const char *folder, const char *name)
{
    return alloc_printf("%s/%s", folder, name);
}

/* Whether a folder in `folder` holds images. */
static bool has_classes(const char *folder)
{
    DIR *open = opendir(folder);
    struct dirent *entry;
    bool found = false;
    while (open && !found && (entry = readdir(open))) {
        char *path = join(folder, entry->d_name);
        DIR *class = is_visible(entry) && is_folder(path) ? opendir(path) : NULL;
        struct dirent *file;
        while (class && !found && (file = readdir(class)))
            found = is_image(file);
        if (class)
            closedir(class);
        free(path);
    }
    if (open)
        closedir(open);
    return found;
}

static bool images_is(const char *folder)
{
    char *train = join(folder, "train");
    bool is = has_classes(train) || has_classes(folder);
    free(train);
    return is;
}

/* Names in a folder, sorted; owned by the caller with list_free(). */
struct list {
    struct dirent **entries;
    int count;
};

static bool list_read(const char *folder, int (*wanted)(const struct dirent *),
                      struct list *list, struct error *err)
{
    list->count = scandir(folder, &list->entries, wanted, alphasort);
    if (list->count >= 0)
        return true;
    *list = (struct list){0};
    return error_errno(err, errno == ENOENT ? NOT_FOUND : DENIED, "cannot read %s", folder);
}

static void list_free(struct list *list)
{
    for (int i = 0; i < list->count; i++)
        free(list->entries[i]);
    free(list->entries);
    *list = (struct list){0};
}

/* --- classes --- */

static bool read_classes(const char *folder, struct list *classes, struct error *err)
{
    if (!list_read(folder, is_visible, classes, err))
        return false;
    int kept = 0;
    for (int i = 0; i < classes->count; i++) {
        char *path = join(folder, classes->entries[i]->d_name);
        if (is_folder(path))
            classes->entries[kept++] = classes->entries[i];
        else
            free(classes->entries[i]);
        free(path);
    }
    classes->count = kept;
    return kept || fail(err, INVALID, "%s has no folders, one for each class", folder);
}

static int find_class(const struct list *classes, const char *name)
{
    for (int i = 0; i < classes->count; i++)
        if (!strcmp(classes->entries[i]->d_name, name))
            return i;
    return -1;
}

/* The files of all classes in `folder`, which must be those of train/. */
static bool find_files(const char *folder, const struct list *classes, struct images *images,
                       struct error *err)
{
    struct list found, files;
    if (!read_classes(folder, &found, err))
        return false;
    bool ok = true;
    for (int i = 0; ok && i < found.count; i++) {
        char *path = join(folder, found.entries[i]->d_name);
        int class = find_class(classes, found.entries[i]->d_name);
        if (class < 0)
            ok = fail(err, INVALID, "%s: there are no images of this class to train on", path);
        else
            ok = list_read(path, is_image, &files, err);
        for (int f = 0; ok && f < files.count; f++)
            images_add(images, join(path, files.entries[f]->d_name), class);
        if (ok)
            list_free(&files);
        free(path);
    }
    list_free(&found);
    return ok;
}

/* --- opening --- */

static void add_columns(struct dataset *dataset, const struct shape *shape,
                        const struct list *classes)
{
    const char **names = alloc_array((size_t)classes->count, sizeof(*names));
    for (int i = 0; i < classes->count; i++)
        names[i] = classes->entries[i]->d_name;
    const struct dataset_column columns[] = {
        {.name = "images", .stored = U8, .dtype = F32, .shape = *shape, .scale = 1.0 / 255},
        {.name = "labels",
         .role = DATASET_TARGET,
         .stored = I32,
         .dtype = I32,
         .classes = classes->count,
         .vocabulary = names}};
    for (int i = 0; i < ARRAY_LEN(columns); i++)
        format_add_column(dataset, &columns[i]);
    free(names);
}

static bool open_part(struct dataset_opening *opening, const char *folder,
                      const struct list *classes, struct images_options *options,
                      struct dataset_part *part, struct error *err)
{
    struct dataset *dataset = opening->dataset;
    struct images *images = images_new();
    int64_t allowed = opening->data->skip_damaged;
    options->skip_max = allowed < 0 ? INT64_MAX : allowed - dataset->skipped;
    bool ok = find_files(folder, classes, images, err) &&
              images_check(images, folder, options, &dataset->skipped, err);
    if (!ok) {
        images_free(images);
        return false;
    }
    if (!dataset->columns_count)
        add_columns(dataset, &SHAPE(options->height, options->width, options->channels),
                    classes);
    part->examples = images_examples(images);
    part->count = part->examples->count;
    return true;
}

static bool images_open(struct dataset_opening *opening, struct error *err)
{
    static const char *const names[] = {"train", "validation", "test"};
    const struct spec_data *data = opening->data;
    struct dataset *dataset = opening->dataset;
    struct dataset_part *parts[] = {&dataset->train, &dataset->validation, &dataset->test};
    struct images_options options = {.height = data->image_size[0],
                                     .width = data->image_size[1],
                                     .same_size = !data->image_size[0],
                                     .channels =
                                         data->image_channels ? data->image_channels : 3,
                                     .memory = opening->memory};
    struct list classes = {0};
    char *train = join(opening->folder, "train");
    bool is_split = has_classes(train);
    bool ok = read_classes(is_split ? train : opening->folder, &classes, err);
    for (int p = 0; ok && p < (is_split ? 3 : 1); p++) {
        char *path = is_split ? join(opening->folder, names[p]) : alloc_text(opening->folder);
        if (!p || is_folder(path))
            ok = open_part(opening, path, &classes, &options, parts[p], err);
        free(path);
    }
    list_free(&classes);
    free(train);
    return ok;
}

const struct dataset_format format_images = {
    .name = "images",
    .wanted =
        "train/CLASS/ and test/CLASS/, or CLASS/, with image files (.jpg, .png, .bmp, .gif)",
    .is = images_is,
    .open = images_open,
};
