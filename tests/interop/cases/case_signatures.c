/* case_signatures.c - the signature of every op as text, for signatures.py. */

#include "tests/interop/cases/cases.h"

#include "runtime/op.h"

static const char *or_dash(const char *text)
{
    return text ? text : "-";
}

static void print_args(const char *what, const struct op_arg *args, int count)
{
    for (int i = 0; i < count; i++)
        printf("%s\t%s\t%d\t%d\t%s\t%s\t%s\n", what, args[i].name,
               args[i].dtype > DTYPE_REF ? args[i].dtype - DTYPE_REF : args[i].dtype,
               args[i].is_ref, or_dash(args[i].type_attr), or_dash(args[i].number_attr),
               or_dash(args[i].list_attr));
}

/* Bytes that would end a line or a field are written as numbers. */
static void print_text(const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)data[i] < ' ' || data[i] == '\\')
            printf("\\x%02x", (unsigned char)data[i]);
        else
            putchar(data[i]);
}

static void print_default(const struct op_attr *attr)
{
    const struct attr *value = &attr->value;
    if (attr->is_list)
        printf("%d", value->count);
    else if (attr->kind == ATTR_INT)
        printf("%lld", (long long)value->ints[0]);
    else if (attr->kind == ATTR_FLOAT)
        printf("%.9g", (double)value->floats[0]);
    else if (attr->kind == ATTR_BOOL)
        printf("%d", value->bools[0]);
    else if (attr->kind == ATTR_TYPE)
        printf("%d", value->types[0]);
    else if (attr->kind == ATTR_STRING)
        print_text(value->strings[0].data, value->strings[0].size);
}

static void print_attr(const struct op_attr *attr)
{
    printf("attr\t%s\t%d\t%d\t%llx\t", attr->name, attr->kind, attr->is_list,
           (unsigned long long)attr->types);
    if (attr->has_minimum)
        printf("%lld", (long long)attr->minimum);
    printf("\t");
    for (int i = 0; attr->strings && attr->strings[i]; i++)
        printf("%s'%s'", i ? "," : "", attr->strings[i]);
    printf("\t%d\t", attr->has_default);
    if (attr->has_default)
        print_default(attr);
    printf("\n");
}

void case_signatures_print(void)
{
    for (int i = 0; i < op_count(); i++) {
        const struct op *op = op_at(i);
        const struct op_signature *signature = op_signature(op);
        printf("op\t%s\n", op->name);
        print_args("input", signature->inputs, signature->inputs_count);
        print_args("output", signature->outputs, signature->outputs_count);
        for (int a = 0; a < signature->attrs_count; a++)
            print_attr(&signature->attrs[a]);
    }
}
