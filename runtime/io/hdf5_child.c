/* hdf5_child.c - the process that reads an HDF5 file; see hdf5.h for why it is one. */

#include <errno.h>
#include <hdf5/serial/hdf5.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base.h"
#include "runtime/dtype.h"
#include "runtime/io/hdf5.h"
#include "runtime/io/hdf5_internal.h"

#define CHILD_MEMORY (INT64_C(256) << 20) /* beside what follows from the file's size */
#define CHILD_SECONDS 5                   /* and one for each so many bytes */
#define CHILD_BYTES_A_SECOND (20 << 20)

struct child {
    int fd;
    uint64_t left; /* bytes of data that may still come */
    const char *path;
};

/* --- telling --- */

static void put(const struct child *child, const void *bytes, size_t size)
{
    while (size) {
        ssize_t count = write(child->fd, bytes, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            _exit(1); /* nobody listens any more */
        bytes = (const char *)bytes + count;
        size -= (size_t)count;
    }
}

static void put_head(const struct child *child, struct hdf5_head head, const char *path,
                     const char *attribute)
{
    head.path_size = (uint32_t)strlen(path);
    head.attribute_size = (uint32_t)(attribute ? strlen(attribute) : 0);
    put(child, &head, sizeof(head));
    put(child, path, head.path_size);
    put(child, attribute, head.attribute_size);
}

static _Noreturn void give_up(const struct child *child, const char *what, const char *path)
{
    char text[600];
    snprintf(text, sizeof(text), "%s%s%.400s%s", what, path ? " \"" : "", path ? path : "",
             path ? "\"" : "");
    put_head(child, (struct hdf5_head){.kind = HDF5_FAILED}, text, NULL);
    _exit(0);
}

/* --- types --- */

/* The type of ours, and the one that libhdf5 is asked for; 0 when there is none. */
static enum dtype number_type(hid_t type, hid_t *memory)
{
    size_t size = H5Tget_size(type);
    bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
    if (H5Tget_class(type) == H5T_FLOAT) {
        size_t sign, exponent, exponent_size, mantissa, mantissa_size;
        if (size == 4 || size == 8) {
            *memory = H5Tcopy(size == 4 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE);
            return size == 4 ? F32 : F64;
        }
        if (size != 2 || H5Tget_fields(type, &sign, &exponent, &exponent_size, &mantissa,
                                       &mantissa_size) < 0)
            return DTYPE_NONE;
        *memory = H5Tcopy(type);
        H5Tset_order(*memory, H5T_ORDER_LE);
        return exponent_size == 5 ? F16 : exponent_size == 8 ? BF16 : DTYPE_NONE;
    }
    switch (size) {
    case 1:
        *memory = H5Tcopy(is_signed ? H5T_NATIVE_INT8 : H5T_NATIVE_UINT8);
        return is_signed ? I8 : U8;
    case 2:
        *memory = H5Tcopy(is_signed ? H5T_NATIVE_INT16 : H5T_NATIVE_UINT16);
        return is_signed ? I16 : U16;
    case 4:
        *memory = H5Tcopy(is_signed ? H5T_NATIVE_INT32 : H5T_NATIVE_UINT32);
        return is_signed ? I32 : U32;
    case 8:
        *memory = H5Tcopy(is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64);
        return is_signed ? I64 : U64;
    }
    return DTYPE_NONE;
}

static enum dtype type_of(hid_t type, hid_t *memory)
{
    switch (H5Tget_class(type)) {
    case H5T_INTEGER:
    case H5T_FLOAT:
        return number_type(type, memory);
    case H5T_ENUM: /* h5py's bool */
        *memory = H5Tcopy(type);
        return H5Tget_size(type) == 1 && H5Tget_nmembers(type) == 2 ? BOOL : DTYPE_NONE;
    case H5T_STRING:
        *memory = H5Tcopy(type);
        return STRING;
    default:
        return DTYPE_NONE;
    }
}

/* --- values --- */

struct value {
    hid_t id; /* of a dataset or an attribute */
    bool is_attribute;
    hid_t type, memory, space;
};

static herr_t read_value(const struct value *value, void *out)
{
    return value->is_attribute
               ? H5Aread(value->id, value->memory, out)
               : H5Dread(value->id, value->memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, out);
}

/* Strings of one length, or each with its own. */
static void send_strings(struct child *child, const struct value *value, struct hdf5_head *head,
                         const hsize_t *dims, uint64_t count, const char *path,
                         const char *attribute)
{
    bool variable = H5Tis_variable_str(value->type) > 0;
    size_t size = variable ? sizeof(char *) : H5Tget_size(value->type);
    if (!size || count > child->left / size)
        give_up(child, "too much text in", path);
    char *bytes = calloc(count ? count : 1, size);
    uint64_t total = 0;
    if (!bytes || (count && read_value(value, bytes) < 0))
        give_up(child, "cannot read", path);
    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t i = 0; i < count; i++) {
            const char *text = bytes + i * size;
            if (variable)
                memcpy(&text, bytes + i * size, sizeof(text));
            uint32_t length = (uint32_t)(!text      ? 0
                                         : variable ? strlen(text)
                                                    : strnlen(text, size));
            if (!pass) {
                total += sizeof(length) + length;
                continue;
            }
            put(child, &length, sizeof(length));
            put(child, text, length);
        }
        if (pass)
            break;
        if (total > child->left)
            give_up(child, "too much text in", path);
        head->data_size = total;
        put_head(child, *head, path, attribute);
        put(child, dims, head->rank * sizeof(*dims));
    }
    child->left -= total;
    free(bytes);
}

static void send_value(struct child *child, struct value *value, struct hdf5_head head,
                       const char *path, const char *attribute)
{
    hsize_t dims[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_ndims(value->space);
    H5S_class_t kind = H5Sget_simple_extent_type(value->space);
    head.dtype = rank < 0 || rank > LIMIT_TENSOR_RANK || kind == H5S_NULL
                     ? DTYPE_NONE
                     : (uint32_t)type_of(value->type, &value->memory);
    if (!head.dtype) {
        put_head(child, head, path, attribute);
        return;
    }
    head.rank = (uint32_t)rank;
    if (H5Sget_simple_extent_dims(value->space, dims, NULL) < 0)
        give_up(child, "cannot read the shape of", path);
    uint64_t count = 1;
    for (int i = 0; i < rank; i++) {
        if (dims[i] && count > child->left / dims[i])
            give_up(child, "more data than the file could hold in", path);
        count *= dims[i];
    }
    if (head.dtype == STRING) {
        send_strings(child, value, &head, dims, count, path, attribute);
        return;
    }
    size_t size = dtype_size((int)head.dtype);
    if (count > child->left / size)
        give_up(child, "more data than the file could hold in", path);
    head.data_size = count * size;
    void *bytes = calloc(count ? count : 1, size);
    if (!bytes || (count && read_value(value, bytes) < 0))
        give_up(child, "cannot read", path);
    put_head(child, head, path, attribute);
    put(child, dims, head.rank * sizeof(*dims));
    put(child, bytes, head.data_size);
    free(bytes);
    child->left -= head.data_size;
}

/* --- objects --- */

static herr_t on_attribute(hid_t object, const char *name, const H5A_info_t *info, void *data)
{
    (void)info;
    struct child *child = data;
    struct value value = {.id = H5Aopen(object, name, H5P_DEFAULT), .is_attribute = true};
    if (value.id < 0)
        give_up(child, "cannot open an attribute of", child->path);
    value.type = H5Aget_type(value.id);
    value.space = H5Aget_space(value.id);
    send_value(child, &value, (struct hdf5_head){.kind = HDF5_ATTRIBUTE}, child->path, name);
    if (value.memory > 0)
        H5Tclose(value.memory);
    H5Tclose(value.type);
    H5Sclose(value.space);
    H5Aclose(value.id);
    return 0;
}

static void send_dataset(struct child *child, hid_t id, const char *path)
{
    struct value value = {.id = id, .type = H5Dget_type(id), .space = H5Dget_space(id)};
    if (value.type < 0 || value.space < 0)
        give_up(child, "cannot read", path);
    send_value(child, &value, (struct hdf5_head){.kind = HDF5_DATASET}, path, NULL);
    if (value.memory > 0)
        H5Tclose(value.memory);
    H5Tclose(value.type);
    H5Sclose(value.space);
}

static herr_t on_object(hid_t root, const char *name, const H5O_info_t *info, void *data)
{
    struct child *child = data;
    const char *path = strcmp(name, ".") ? name : "";
    if (info->type != H5O_TYPE_DATASET && info->type != H5O_TYPE_GROUP)
        return 0;
    hid_t id = H5Oopen(root, name, H5P_DEFAULT);
    if (id < 0)
        give_up(child, "cannot open", path);
    child->path = path;
    if (info->type == H5O_TYPE_DATASET)
        send_dataset(child, id, path);
    else
        put_head(child, (struct hdf5_head){.kind = HDF5_GROUP}, path, NULL);
    hsize_t from = 0;
    if (H5Aiterate(id, H5_INDEX_NAME, H5_ITER_NATIVE, &from, on_attribute, child) < 0)
        give_up(child, "cannot read the attributes of", path);
    H5Oclose(id);
    return 0;
}

/* --- the process --- */

static void set_limit(int what, uint64_t value)
{
    const struct rlimit limit = {value, value};
    setrlimit((__rlimit_resource_t)what, &limit);
}

/* Bytes of memory that can be written, as RLIMIT_DATA counts them; sanitizers have much. */
static uint64_t memory_now(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%*u %*u %*u %*u %*u %llu", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void confine(const struct hdf5_source *source, uint64_t left)
{
    static const int signals[] = {SIGSEGV, SIGBUS,  SIGABRT, SIGFPE,  SIGILL, SIGALRM,
                                  SIGINT,  SIGTERM, SIGXCPU, SIGXFSZ, SIGUSR1};
    for (int i = 0; i < ARRAY_LEN(signals); i++)
        signal(signals[i], SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 0);
    set_limit(RLIMIT_CORE, 0);
    set_limit(RLIMIT_FSIZE, 0);
    set_limit(RLIMIT_CPU, CHILD_SECONDS + source->size / CHILD_BYTES_A_SECOND);
    set_limit(RLIMIT_DATA, memory_now() + CHILD_MEMORY + 3 * source->size + left);
}

void hdf5_child_main(const struct hdf5_source *source, int fd)
{
    struct child child = {.fd = fd};
    uint64_t most = (uint64_t)LIMIT_TENSOR_BYTES;
    child.left = source->size > most / HDF5_EXPANSION ? most : source->size * HDF5_EXPANSION;
    confine(source, child.left);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (source->bytes) {
        H5Pset_fapl_core(access, 1 << 20, false);
        if (H5Pset_file_image(access, (void *)source->bytes, source->size) < 0)
            give_up(&child, "the file is too large to be opened", NULL);
    }
    hid_t file = H5Fopen(source->path, H5F_ACC_RDONLY, access);
    if (file < 0)
        give_up(&child, "it is no HDF5 file, or its beginning is damaged", NULL);
    if (H5Ovisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, on_object, &child) < 0)
        give_up(&child, "its list of objects is damaged", NULL);
    put_head(&child, (struct hdf5_head){.kind = HDF5_END}, "", NULL);
    _exit(0);
}
