/* hdf5_write.c - items as an HDF5 file, put together in memory by libhdf5. */

#include <hdf5/serial/hdf5.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/io/hdf5.h"

struct writing {
    hid_t file, text; /* `text`: the type of strings */
    hid_t half, bfloat;
    hid_t links;   /* how links are made: with the groups before them */
    hid_t created; /* how datasets are made: without times, which would differ */
};

/* A sign, an exponent and a mantissa in 16 bits. */
static hid_t small_float(size_t exponent, size_t mantissa)
{
    hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    H5Tset_fields(type, 15, mantissa, exponent, 0, mantissa);
    H5Tset_size(type, 2);
    H5Tset_ebias(type, ((size_t)1 << (exponent - 1)) - 1);
    return type;
}

/* The type in memory, which is also that in the file; below 0: there is none. */
static hid_t type_of(const struct writing *w, enum dtype dtype)
{
    switch (dtype) {
    case F32:
        return H5T_IEEE_F32LE;
    case F16:
        return w->half;
    case BF16:
        return w->bfloat;
    case F64:
        return H5T_IEEE_F64LE;
    case I8:
        return H5T_STD_I8LE;
    case I16:
        return H5T_STD_I16LE;
    case I32:
        return H5T_STD_I32LE;
    case I64:
        return H5T_STD_I64LE;
    case U8:
    case BOOL:
        return H5T_STD_U8LE;
    case U16:
        return H5T_STD_U16LE;
    case U32:
        return H5T_STD_U32LE;
    case U64:
        return H5T_STD_U64LE;
    case STRING:
        return w->text;
    default:
        return -1;
    }
}

/* What libhdf5 takes of a tensor; of strings, pointers to copies that end with a NUL. */
static const void *data_of(const struct tensor *value, char ***copies)
{
    *copies = NULL;
    if (value->dtype != STRING)
        return value->data;
    *copies = alloc_array((size_t)value->count + 1, sizeof(**copies));
    for (int64_t i = 0; i < value->count; i++)
        (*copies)[i] =
            alloc_text_n(tensor_strings(value)[i].data, tensor_strings(value)[i].size);
    return *copies;
}

static bool write_value(const struct writing *w, const struct hdf5_item *item)
{
    const struct tensor *value = &item->value;
    const char *path = item->path[0] ? item->path : "/";
    hsize_t dims[LIMIT_TENSOR_RANK];
    for (int i = 0; i < value->shape.rank; i++)
        dims[i] = (hsize_t)value->shape.dims[i];
    hid_t type = type_of(w, value->dtype), id = -1;
    hid_t space = value->shape.rank ? H5Screate_simple(value->shape.rank, dims, NULL)
                                    : H5Screate(H5S_SCALAR);
    if (type >= 0 && item->attribute)
        id = H5Acreate_by_name(w->file, path, item->attribute, type, space, H5P_DEFAULT,
                               H5P_DEFAULT, H5P_DEFAULT);
    else if (type >= 0)
        id = H5Dcreate2(w->file, path, type, space, w->links, w->created, H5P_DEFAULT);
    char **copies;
    const void *data = data_of(value, &copies);
    bool ok = id >= 0;
    if (ok && value->count)
        ok = (item->attribute ? H5Awrite(id, type, data)
                              : H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data)) >= 0;
    for (int64_t i = 0; copies && i < value->count; i++)
        free(copies[i]);
    free(copies);
    if (id >= 0)
        ok = (item->attribute ? H5Aclose(id) : H5Dclose(id)) >= 0 && ok;
    H5Sclose(space);
    return ok;
}

static bool write_group(const struct writing *w, const char *path)
{
    if (!path[0])
        return true; /* the root is there */
    hid_t group = H5Gcreate2(w->file, path, w->links, H5P_DEFAULT, H5P_DEFAULT);
    return group >= 0 && H5Gclose(group) >= 0;
}

static bool take_image(hid_t file, struct str *out)
{
    if (H5Fflush(file, H5F_SCOPE_GLOBAL) < 0)
        return false;
    ssize_t size = H5Fget_file_image(file, NULL, 0);
    return size > 0 && H5Fget_file_image(file, str_extend(out, (size_t)size), (size_t)size) > 0;
}

bool hdf5_write(const struct hdf5_item *items, int count, struct str *out, struct error *err)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    struct writing w = {.text = H5Tcopy(H5T_C_S1),
                        .half = small_float(5, 10),
                        .bfloat = small_float(8, 7),
                        .links = H5Pcreate(H5P_LINK_CREATE),
                        .created = H5Pcreate(H5P_DATASET_CREATE)};
    H5Tset_size(w.text, H5T_VARIABLE);
    H5Tset_cset(w.text, H5T_CSET_UTF8);
    H5Pset_create_intermediate_group(w.links, 1);
    H5Pset_obj_track_times(w.created, false);
    H5Pset_fapl_core(access, 1 << 20, false);
    w.file = H5Fcreate("memory", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    bool ok = w.file >= 0;
    for (int i = 0; ok && i < count; i++) {
        ok = items[i].group ? write_group(&w, items[i].path) : write_value(&w, &items[i]);
        if (!ok)
            fail(err, INTERNAL, "cannot put \"%s%s%s\" into an HDF5 file", items[i].path,
                 items[i].attribute ? "@" : "", items[i].attribute ? items[i].attribute : "");
    }
    if (ok && !take_image(w.file, out))
        ok = fail(err, INTERNAL, "cannot put an HDF5 file together");
    if (w.file >= 0)
        H5Fclose(w.file);
    H5Pclose(w.created);
    H5Pclose(w.links);
    H5Tclose(w.text);
    H5Tclose(w.half);
    H5Tclose(w.bfloat);
    H5Pclose(access);
    return ok;
}
