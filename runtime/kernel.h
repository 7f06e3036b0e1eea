/*
 * kernel.h - how an op is computed on a kind of device.
 *
 * A kernel is one constant in a file of its own (kernels/ref/relu.c, kernels/cpu/matmul.c) and
 * a row in its folder's list.  kernel_find() walks all tables in order: the first that takes
 * the node wins, and the plain C references come last.
 *
 * Life of a kernel on one node of one plan:  prepare (once) -> run (each step) -> release.
 * Runs of a plan that overlap each have a state of their own, so a state is never used by two
 * threads.  Kernels of stateful ops, though, are prepared once per session and node, and
 * lock what they change.
 */
#pragma once

#include "runtime/device.h"
#include "runtime/graph.h"
#include "runtime/tensor.h"

struct cancel;
struct collective;
struct error;
struct function_set;
struct kernel_call;
struct resource;
struct resources;
struct step;
struct variable;

struct kernel {
    const char *op;
    enum device_type device;
    uint64_t dtypes;       /* allowed for the type attribute; 0: any */
    const char *type_attr; /* which attribute `dtypes` is about; NULL: "T", else "dtype" */

    /* (optional) A last word: whether this kernel can do this node (attributes, known shapes).
     */
    bool (*accepts)(const struct node *node);

    /* (optional) Reads the node's attributes once; `*state` is given to run and release. */
    bool (*prepare)(const struct node *node, void **state, struct error *err);
    void (*release)(void *state); /* (optional) */

    /* Computes all outputs.  Must not keep pointers into the call. */
    bool (*run)(struct kernel_call *call, struct error *err);

    /*
     * In place of run, for ops that may have to wait (queues, barriers, receives): begins the
     * work and returns, holding no thread.  The kernel then calls kernel_done() exactly once,
     * from any thread, perhaps before start() returns; call and inputs are valid until then.
     * It registers with kernel_cancel() what ends its wait.
     */
    void (*start)(struct kernel_call *call);
};

struct kernel_call {
    const struct node *node;
    const struct tensor *const *in; /* values; references are followed, NULL if uninitialised */
    int in_count;
    struct tensor *out; /* one per output, filled through the functions below */
    void *state;
    struct step *step;              /* of this run of the session */
    struct resources *resources;    /* variables and the like of the session's device */
    struct function_set *functions; /* for function_get(); NULL: none */
    struct kernel_slot *slots;      /* the plan's memory for outputs; private to kernel.c */
    struct variable *const *refs;   /* private: behind inputs that are references, else NULL */
    uint64_t reusable;              /* private: inputs whose memory may become an output's */
    int threads;                    /* how many this kernel may use */
    int precision; /* BF16: products of floats round their factors to it, and add in float */
    uint64_t frame_id; /* with start(): the same in all parts of a step, */
    int64_t iteration; /* ... and in that frame */
    void *waiter;      /* private, with done: who waits for start() */
    void (*done)(struct kernel_call *call, const struct error *err);
};

/* Ends what start() began: outputs are filled (`err` NULL), or the node failed. */
void kernel_done(struct kernel_call *call, const struct error *err);

/* Of this run of the session; never NULL. */
struct cancel *kernel_cancel(struct kernel_call *call);

/* Through it the kernel works together with those of other devices; NULL: there are none. */
struct collective *kernel_collective(struct kernel_call *call);

/* State that ends with this run of the session: stacks, tensor arrays. */
struct resources *kernel_step_resources(struct kernel_call *call);

/* Keeps a resource until this run of the session ends; takes the reference over. */
void kernel_hold(struct kernel_call *call, struct resource *resource);

/*
 * Gives output `index` memory for `shape` in the node's output type, with undefined contents,
 * and returns the tensor to fill; NULL (EXHAUSTED) when there is none.  Usually planned memory.
 */
struct tensor *kernel_output(struct kernel_call *call, int index, const struct shape *shape,
                             struct error *err) CHECKED;

/* As kernel_output(), but never planned memory: others may hold the tensor longer than the
 * step. */
struct tensor *kernel_output_own(struct kernel_call *call, int index, const struct shape *shape,
                                 struct error *err) CHECKED;

/*
 * As kernel_output(), but takes over the memory of input `input` if this is its last use,
 * nobody else sees it, and type size and count fit.  Then out and in data are the same pointer:
 * the kernel must be able to work in place.
 */
struct tensor *kernel_output_reuse(struct kernel_call *call, int index, int input,
                                   const struct shape *shape, struct error *err) CHECKED;

/*
 * Moves input `input` to `*out`, which is the caller's to keep and to write, if this is its
 * last use and nobody else sees it; else false.  The kernel may read the input until it
 * returns.
 */
bool kernel_input_take(struct kernel_call *call, int input, struct tensor *out);

/*
 * As kernel_input_take(), but only in a run whose outputs are buffers of their own anyway (one
 * that is planned has better places for them), to give out parts of it.
 */
bool kernel_input_take_apart(struct kernel_call *call, int input, struct tensor *whole);

/*
 * Output `index` becomes the elements of `whole` from `first` on, under `shape`, without a
 * copy: the memory is written by whoever is the last to have any of it.  False, and nothing is
 * done, where they do not begin on a boundary as data of tensors does.
 */
bool kernel_output_part(struct kernel_call *call, int index, const struct tensor *whole,
                        int64_t first, const struct shape *shape);

/* Output `index` becomes the same elements as `tensor` under `shape`: Identity, Reshape. */
void kernel_output_share(struct kernel_call *call, int index, const struct tensor *tensor,
                         const struct shape *shape);

/* Output `index` takes the tensor over; `*tensor` becomes none. */
void kernel_output_take(struct kernel_call *call, int index, struct tensor *tensor);

/*
 * `size` bytes of scratch, 64-byte aligned, until run() returns: not for kernels with start(),
 * whose work goes on.  NULL (EXHAUSTED) if there is none.
 */
void *kernel_scratch(struct kernel_call *call, size_t size, struct error *err) CHECKED;

/*
 * The variable behind input `index`, be it a reference or a resource handle.  Borrowed for the
 * run.  Fails with NOT_FOUND / PRECONDITION as TensorFlow does when the resource is gone.
 */
struct variable *kernel_variable(struct kernel_call *call, int index,
                                 struct error *err) CHECKED;

/*
 * The resource of that kind behind the handle in input `index` (a RESOURCE scalar), looked up
 * by name if the one in the handle was removed.  Counted: resource_unref() it.  Fails with
 * INVALID, NOT_FOUND.
 */
struct resource *kernel_resource(struct kernel_call *call, int index, const char *kind,
                                 struct error *err) CHECKED;

/*
 * Output `index` becomes a scalar that holds `resource` (another reference is taken): a
 * RESOURCE with the names by which it is found, or a VARIANT (names NULL).
 */
bool kernel_output_resource(struct kernel_call *call, int index, struct resource *resource,
                            const char *container, const char *name, struct error *err) CHECKED;

/* The container that the resource handle in that input names; borrowed. */
const char *kernel_container(const struct kernel_call *call, int input);

/* The object of that kind in element `i` of a VARIANT tensor; borrowed.  Fails with INVALID. */
struct resource *kernel_variant(const struct tensor *tensor, int64_t i, const char *kind,
                                struct error *err) CHECKED;

/* Output `index` becomes a reference to `variable` (VariableV2, Assign, ApplyAdam ...). */
void kernel_output_ref(struct kernel_call *call, int index, struct variable *variable);

/* Output `index` would be a `given`, which the node does not say: false, in TensorFlow's words.
 */
bool kernel_fail_output_type(const struct kernel_call *call, int index, enum dtype given,
                             struct error *err);

/* Whether the text names the node as TensorFlow does, so that nobody need add it. */
bool kernel_error_is_at(const struct error *err, const char *node_name);

/* Input `i` as a value; asserts that it is there. */
static inline const struct tensor *kernel_in(const struct kernel_call *call, int i)
{
    assert(i < call->in_count);
    assert(call->in[i]);
    return call->in[i];
}

/* --- tables --- */

/*
 * The kernel for `node` on devices of `type`, by its type attributes; NULL with UNIMPLEMENTED
 * and what was tried if there is none.
 */
const struct kernel *kernel_find(const struct node *node, enum device_type type,
                                 struct error *err) CHECKED;

/* Whether some kernel exists, for the placer. */
bool kernel_exists(const struct node *node, enum device_type type);

/*
 * Adds a NULL-terminated table behind those added before.  Called by main() at start, cpu
 * before ref, and after loading libtrainyard-cuda.so or an operator's library.
 */
void kernel_add_table(const struct kernel *const *kernels);

/* Every kernel, for tests: by table and index; NULL at the end of a table and of the tables. */
const struct kernel *kernel_at(int table, int index);
