/*
 * op.h - what an operation means: arity, types, attributes, shape inference, gradient.
 *
 * How it is computed is a kernel's affair (kernel.h).  Each op is one constant in a file of its
 * family in runtime/ops/, and one row in runtime/ops/list.h.
 *
 * The signature is text, in the form of TensorFlow's op registry:
 *
 *   inputs, outputs   "x:T y:T"   "values:N*T"   "input:list(Tin)"   "ref:Ref(T)"   "i:int32"
 *   attrs             "T:{float,double,int32}  transpose_a:bool=false  N:int>=2
 *                      padding:{'SAME','VALID'}  strides:list(int)  axis:int=-1
 *                      T:type  out_type:{int32,int64}=int32  shape:shape=<unk>  s:string=''"
 *
 * "T:type" allows any type; a set in braces those named, and a type attribute named in an
 * input is deduced from it.  op_find() parses the text at first use.
 */
#pragma once

#include "runtime/attr.h"
#include "runtime/dtype.h"
#include "runtime/shape.h"

struct error;
struct gradient;
struct graph;
struct node;
struct tensor;

/* --- declaring --- */

struct op_signature;

enum op_flags {
    OP_STATEFUL = 1, /* not folded, not merged with an equal node, never pruned early */
    OP_COMMUTATIVE = 2,
    OP_UNINITIALIZED_OK = 4, /* takes a reference to a variable that has no value yet */
    OP_EXPENSIVE = 8,        /* worth a thread; all others are run inline */
};

/* What the executor itself does for an op, which so decides what runs and how often. */
enum op_flow {
    FLOW_NONE,
    FLOW_SWITCH,  /* gives input 0 to the output that input 1 names; the others are dead */
    FLOW_MERGE,   /* gives the first input that comes alive, and its index */
    FLOW_ENTER,   /* gives its input to a frame of its own, where a loop runs */
    FLOW_EXIT,    /* gives its input to the frame around */
    FLOW_NEXT,    /* gives its input to the next iteration */
    FLOW_PASS,    /* gives its input as it is */
    FLOW_TRIGGER, /* runs after its controls, dead or alive */
    FLOW_RETVAL,  /* keeps its input for the end of the run: a fetch */
    FLOW_SEND,    /* gives its input, dead or alive, to the step's rendezvous */
    FLOW_RECV     /* takes its output from there */
};

/* What shape inference sees of one node. */
struct infer {
    const struct node *node;
    const struct shape *inputs;            /* what is known of each input */
    const struct tensor *const *constants; /* value of each input that is constant, else NULL */
    struct shape *outputs;                 /* to fill in; unknown at first */
};

typedef bool op_infer(struct infer *infer, struct error *err);

/*
 * Adds nodes to gradient->graph that compute the gradient with respect to each input from those
 * of the outputs; see gradient.h.
 */
typedef bool op_gradient(struct gradient *gradient, struct error *err);

struct op {
    const char *name;
    const char *inputs;
    const char *outputs;
    const char *attrs;
    int flags;
    enum op_flow flow;     /* FLOW_NONE: a kernel does the work */
    op_infer *infer;       /* (optional) NULL: nothing is known of the outputs */
    op_gradient *gradient; /* (optional) NULL: none is registered, reaching it is an error */
    bool no_gradient;      /* declared not differentiable: the chain ends here, no error */
    /* (optional) In place of the texts: the op is a function of a graph's library. */
    const struct op_signature *signature;
};

/* --- looking up --- */

struct op_arg {
    const char *name;
    int dtype; /* fixed type (perhaps a reference), or DTYPE_NONE */
    bool is_ref;
    const char *type_attr;   /* NULL, or the attribute that names the type */
    const char *number_attr; /* NULL, or the attribute that says how many */
    const char *list_attr;   /* NULL, or the list(type) attribute that says which */
};

struct op_attr {
    const char *name;
    enum attr_kind kind;
    bool is_list;
    bool has_default;
    struct attr value;          /* when has_default */
    uint64_t types;             /* ATTR_TYPE: those allowed */
    const char *const *strings; /* ATTR_STRING: those allowed, NULL-terminated; NULL: any */
    bool has_minimum;
    int64_t minimum; /* of an int, or of the length of a list */
};

/* The parsed signature.  Immutable, lives for ever. */
struct op_signature {
    const struct op_arg *inputs;
    int inputs_count;
    const struct op_arg *outputs;
    int outputs_count;
    const struct op_attr *attrs;
    int attrs_count;
};

/* The op of that name; NULL if there is none. */
const struct op *op_find(const char *name);

/* Its parsed signature; asserts that the text is well formed.  Callable from any thread. */
const struct op_signature *op_signature(const struct op *op);

const struct op_attr *op_signature_attr(const struct op_signature *signature, const char *name);

/* Every op, by index from 0 to op_count() - 1. */
int op_count(void);
const struct op *op_at(int index);

/*
 * Adds ops of a library loaded at run time (`ops` is NULL-terminated and stays valid).  Before
 * the first session; fails with EXISTS when a name is taken.
 */
bool op_add_table(const struct op *const *ops, struct error *err) CHECKED;

/*
 * The annotation of a BlockLSTMV2 whose gradient is BlockLSTMGradV2: without it it is what
 * TensorFlow registers, the one of BlockLSTM.
 */
#define OP_OWN_GRADIENT "_own_gradient"

/* --- shape functions that many ops share --- */

bool op_infer_unchanged(struct infer *infer, struct error *err); /* output 0 as input 0 */
bool op_infer_broadcast(struct infer *infer, struct error *err); /* inputs 0 and 1 broadcast */
bool op_infer_scalar(struct infer *infer, struct error *err);    /* all outputs are scalars */
