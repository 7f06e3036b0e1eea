/* mode_checkpoint.c - the verbs after "checkpoint", and what they share. */

#include "task/mode_checkpoint.h"

#include <fnmatch.h>
#include <math.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/nearest.h"

static const char usage[] =
    "usage: trainyard checkpoint show|export|diff ... [options]\n"
    "\n"
    "  show PATH [TENSOR...]        the tensors, their types, shapes and values\n"
    "  export PATH OUT [TENSOR...]  to .npy (one tensor), .npz or .safetensors\n"
    "  diff A B [TENSOR...]         what differs: 0 nothing, 1 something, 2 it cannot be told\n"
    "\n"
    "PATH is a checkpoint of Trainyard or TensorFlow (its prefix, its .index or a folder with\n"
    "one), or a .safetensors, .npy, .npz, .h5 or .keras file.  TENSOR is a name or a pattern\n"
    "with * and ?; without one it is all tensors.\n"
    "\n"
    "  --tensor NAME  one more TENSOR\n"
    "  --no-values    show: do not read the values, only what is listed\n"
    "  --json         show, diff: one JSON object\n"
    "  --tolerance X  diff: absolute or relative differences up to X are none\n"
    "  --force        export: replace OUT if it is there\n";

enum { EXIT_DONE = 0, EXIT_FAULT = 1, EXIT_USER = 2 };

int mode_checkpoint(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } verbs[] = {{"show", mode_checkpoint_show},
                 {"export", mode_checkpoint_export},
                 {"diff", mode_checkpoint_diff}};
    for (int i = 0; i < argc; i++) {
        if (!strcmp(argv[i], "--help")) {
            fputs(usage, stdout);
            return EXIT_DONE;
        }
    }
    for (int i = 0; argc && i < ARRAY_LEN(verbs); i++) {
        if (!strcmp(argv[0], verbs[i].name))
            return verbs[i].run(argc - 1, argv + 1);
    }
    if (argc)
        fprintf(stderr, "trainyard: checkpoint has no verb \"%s\"\n", argv[0]);
    fputs(usage, stderr);
    return EXIT_USER;
}

int mode_checkpoint_fail(const struct error *err)
{
    fprintf(stderr, "trainyard: %s\n", err->text);
    return EXIT_USER;
}

static bool not_found(const char *name, const struct tensors *tensors, struct error *err)
{
    int count;
    const struct tensors_item *items = tensors_items(tensors, &count);
    const char **names = alloc_array((size_t)count + 1, sizeof(*names));
    for (int i = 0; i < count; i++)
        names[i] = items[i].name;
    const char *nearest = nearest_name(name, names);
    free(names);
    return fail(err, NOT_FOUND, "%s has no tensor \"%s\"%s%s%s", tensors_path(tensors), name,
                nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

bool mode_checkpoint_choose(const struct tensors *tensors, const char *const *names,
                            int names_count, bool *chosen, struct error *err)
{
    int count;
    const struct tensors_item *items = tensors_items(tensors, &count);
    for (int i = 0; i < count; i++)
        chosen[i] = !names_count;
    for (int n = 0; n < names_count; n++) {
        bool found = false;
        for (int i = 0; i < count; i++) {
            bool matches = !strcmp(items[i].name, names[n]) ||
                           (strpbrk(names[n], "*?") && !fnmatch(names[n], items[i].name, 0));
            chosen[i] |= matches;
            found |= matches;
        }
        if (!found)
            return not_found(names[n], tensors, err);
    }
    return true;
}

/* --- values --- */

bool mode_checkpoint_is_number(int dtype)
{
    return dtype_known(dtype) && !dtype_is_ref(dtype) &&
           (BIT(dtype) & DTYPES_PLAIN & ~DTYPES_COMPLEX);
}

static double f8e4m3fn(uint8_t bits)
{
    int exponent = bits >> 3 & 15, fraction = bits & 7;
    double sign = bits & 0x80 ? -1 : 1;
    if ((bits & 0x7f) == 0x7f)
        return NAN;
    return exponent ? sign * ldexp(8 + fraction, exponent - 10) : sign * ldexp(fraction, -9);
}

#define EACH(value)                                                                            \
    for (int64_t i = 0; i < count; i++)                                                        \
        out[i] = (double)(value);                                                              \
    break
#define AT(type) ((const type *)elements)[first + i]

void mode_checkpoint_numbers(enum dtype dtype, const void *elements, int64_t first,
                             int64_t count, double *out)
{
    switch (dtype) {
    case F32:
        EACH(AT(float));
    case F64:
        EACH(AT(double));
    case F16:
        EACH(dtype_f16_to_f32(AT(uint16_t)));
    case BF16:
        EACH(dtype_bf16_to_f32(AT(uint16_t)));
    case F8E5M2: /* the upper half of a float16 */
        EACH(dtype_f16_to_f32((uint16_t)(AT(uint8_t) << 8)));
    case F8E4M3FN:
        EACH(f8e4m3fn(AT(uint8_t)));
    case I8:
    case QI8:
        EACH(AT(int8_t));
    case U8:
    case QU8:
    case BOOL:
        EACH(AT(uint8_t));
    case I16:
    case QI16:
        EACH(AT(int16_t));
    case U16:
    case QU16:
        EACH(AT(uint16_t));
    case I32:
    case QI32:
        EACH(AT(int32_t));
    case U32:
        EACH(AT(uint32_t));
    case I64:
        EACH(AT(int64_t));
    case U64:
        EACH(AT(uint64_t));
    default:
        assert(!"a type that is a number");
    }
}

/* Of numbers in a row; a long sum loses less in parts. */
static void add_numbers(struct mode_checkpoint_values *values, const double *numbers,
                        int64_t count)
{
    double sum = 0, min = values->min, max = values->max;
    int64_t zeros = 0;
    for (int64_t i = 0; i < count; i++) {
        double value = numbers[i];
        if (!isfinite(value)) {
            values->nans += isnan(value);
            values->infinities += isinf(value) != 0;
            continue;
        }
        zeros += value == 0;
        min = value < min ? value : min;
        max = value > max ? value : max;
        sum += value;
    }
    values->min = min;
    values->max = max;
    values->zeros += zeros;
    values->sum += sum;
    values->count += count;
}

static void add_piece(struct mode_checkpoint_values *values, enum dtype dtype,
                      const void *elements, int64_t count)
{
    double numbers[1024];
    for (int64_t at = 0; at < count;) {
        int64_t some = count - at < ARRAY_LEN(numbers) ? count - at : ARRAY_LEN(numbers);
        mode_checkpoint_numbers(dtype, elements, at, some, numbers);
        add_numbers(values, numbers, some);
        at += some;
    }
}

bool mode_checkpoint_look(struct tensors *tensors, const struct tensors_item *item,
                          struct mode_checkpoint_values *out, struct error *err)
{
    struct tensors_cursor cursor;
    struct mode_checkpoint_values values = {.min = INFINITY, .max = -INFINITY};
    if (!tensors_begin(&cursor, tensors, item, err))
        return false;
    char *piece = alloc_bytes(TENSORS_PIECE_BYTES);
    int64_t max = TENSORS_PIECE_BYTES / (int64_t)dtype_size(item->dtype), count;
    bool ok;
    do {
        ok = tensors_next(&cursor, piece, max, &count, err);
        if (ok && mode_checkpoint_is_number(item->dtype))
            add_piece(&values, (enum dtype)item->dtype, piece, count);
    } while (ok && count);
    free(piece);
    if (ok)
        *out = values;
    return ok;
}
