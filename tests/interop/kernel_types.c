/*
 * kernel_types.c - prints which types each op has a kernel for, to compare with TensorFlow's.
 *
 * For every op of the registry and every way to choose its type attributes, a line
 *
 *   OP <tab> ATTR=TYPE ... <tab> yes|no
 *
 * with the numbers of the types, for kernel_types.py.
 */

#include "base/error.h"
#include "kernels/list.h"
#include "runtime/op.h"

enum { TYPE_ATTRS_MAX = 8, LISTS_MAX = 8, CHOICES_MAX = 20000 };

/* The type attributes of an op, and which of its types each one has now. */
struct choice {
    const struct op_attr *attrs[TYPE_ATTRS_MAX];
    int types[TYPE_ATTRS_MAX];
    int count;
};

static uint64_t allowed(const struct op_attr *attr)
{
    return attr->types ? attr->types : DTYPES_ANY;
}

/* The next type that the attribute may have after `type`; 0 if there is none. */
static int next_type(const struct op_attr *attr, int type)
{
    for (type++; type < DTYPE_COUNT; type++)
        if (allowed(attr) & BIT(type))
            return type;
    return 0;
}

/* Counts on; false when all combinations were there. */
static bool next_choice(struct choice *choice)
{
    for (int i = 0; i < choice->count; i++) {
        choice->types[i] = next_type(choice->attrs[i], choice->types[i]);
        if (choice->types[i])
            return true;
        choice->types[i] = next_type(choice->attrs[i], 0);
    }
    return false;
}

static struct choice first_choice(const struct op_signature *signature)
{
    struct choice choice = {.count = 0};
    for (int i = 0; i < signature->attrs_count && choice.count < TYPE_ATTRS_MAX; i++) {
        const struct op_attr *attr = &signature->attrs[i];
        if (attr->kind != ATTR_TYPE || attr->is_list)
            continue;
        choice.attrs[choice.count] = attr;
        choice.types[choice.count++] = next_type(attr, 0);
    }
    return choice;
}

/* The lists of types of an op, each with the first that it may hold. */
static int list_types(const struct op_signature *signature, int *types, struct attr *attrs)
{
    int count = 0;
    for (int i = 0; i < signature->attrs_count && count < LISTS_MAX; i++) {
        const struct op_attr *attr = &signature->attrs[i];
        if (attr->kind != ATTR_TYPE || !attr->is_list)
            continue;
        types[count] = next_type(attr, 0);
        attrs[count] = attr_type_list(attr->name, &types[count], 1);
        count++;
    }
    return count;
}

/*
 * A node without inputs is enough: kernels are chosen by attributes, of which types must be
 * there.
 */
static bool has_kernel(const struct op *op, const struct choice *choice)
{
    int types[LISTS_MAX];
    struct error err;
    struct graph *graph = graph_new();
    struct attr attrs[TYPE_ATTRS_MAX + LISTS_MAX];
    int count = choice->count;
    for (int i = 0; i < choice->count; i++)
        attrs[i] = (struct attr){.name = choice->attrs[i]->name,
                                 .kind = ATTR_TYPE,
                                 .count = 1,
                                 .types = &choice->types[i]};
    count += list_types(op_signature(op), types, attrs + count);
    const struct node_def def = {
        .name = "node", .op = op, .attrs = attrs, .attrs_count = count, .device = ""};
    const struct node *node = graph_add_imported(graph, &def, &err);
    bool found = node && kernel_exists(node, CPU);
    graph_free(graph);
    return found;
}

static void print_op(const struct op *op)
{
    struct choice choice = first_choice(op_signature(op));
    int left = CHOICES_MAX;
    do {
        printf("%s\t", op->name);
        for (int i = 0; i < choice.count; i++)
            printf("%s%s=%d", i ? " " : "", choice.attrs[i]->name, choice.types[i]);
        printf("\t%s\n", has_kernel(op, &choice) ? "yes" : "no");
    } while (next_choice(&choice) && --left > 0);
}

int main(void)
{
    kernels_add(false);
    for (int i = 0; i < op_count(); i++)
        print_op(op_at(i));
    return 0;
}
