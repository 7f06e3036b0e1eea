/*
 * trainyard.h - the C API: graphs, tensors, sessions, and ops of one's own.
 *
 * It has the shape of TensorFlow's C API.  Objects are opaque; what a function returns is owned
 * by the caller and given back with the matching ..._free(), unless it says "borrowed".
 * Functions that can fail take a status last, never NULL: look at ty_status_code() after the
 * call.  All functions may be called from any thread; an object that is being changed by one
 * thread (a tensor, a description) must not be used by another meanwhile.
 *
 * Link with -ltrainyard (pkg-config trainyard).  A library with ops of its own is not linked:
 * it includes this file, and whoever loads it (ty_load_library()) has the functions.
 */
#ifndef TRAINYARD_H
#define TRAINYARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TY_API __attribute__((visibility("default")))

/* "0.1.0" */
TY_API const char *ty_version(void);

/* --- status --------------------------------------------------------------------------------
 */

/* TensorFlow's and gRPC's numbers. */
enum ty_code {
    TY_OK = 0,
    TY_CANCELLED = 1,
    TY_UNKNOWN = 2,
    TY_INVALID_ARGUMENT = 3,
    TY_DEADLINE_EXCEEDED = 4,
    TY_NOT_FOUND = 5,
    TY_ALREADY_EXISTS = 6,
    TY_PERMISSION_DENIED = 7,
    TY_RESOURCE_EXHAUSTED = 8,
    TY_FAILED_PRECONDITION = 9,
    TY_ABORTED = 10,
    TY_OUT_OF_RANGE = 11,
    TY_UNIMPLEMENTED = 12,
    TY_INTERNAL = 13,
    TY_UNAVAILABLE = 14,
    TY_DATA_LOSS = 15,
    TY_UNAUTHENTICATED = 16,
};

struct ty_status;

/* A status that says TY_OK. */
TY_API struct ty_status *ty_status_new(void);
TY_API void ty_status_free(struct ty_status *status); /* NULL is fine */

/* What the last call with this status did. */
TY_API enum ty_code ty_status_code(const struct ty_status *status);

/* Why it failed, "" after success.  Borrowed until the next call with this status. */
TY_API const char *ty_status_message(const struct ty_status *status);

/* Sets both; the text is copied. */
TY_API void ty_status_set(struct ty_status *status, enum ty_code code, const char *message);

/* --- buffers: bytes, such as a serialized GraphDef ------------------------------------------
 */

struct ty_buffer;

/* An empty buffer, to be filled by a call that gives bytes. */
TY_API struct ty_buffer *ty_buffer_new(void);

/* A buffer with a copy of `size` bytes. */
TY_API struct ty_buffer *ty_buffer_new_copy(const void *data, size_t size);
TY_API void ty_buffer_free(struct ty_buffer *buffer); /* NULL is fine */

/* Borrowed until the buffer is filled again or freed. */
TY_API const void *ty_buffer_data(const struct ty_buffer *buffer);
TY_API size_t ty_buffer_size(const struct ty_buffer *buffer);

/* --- tensors --------------------------------------------------------------------------------
 */

/* TensorFlow's numbers. */
enum ty_dtype {
    TY_FLOAT = 1,
    TY_DOUBLE = 2,
    TY_INT32 = 3,
    TY_UINT8 = 4,
    TY_INT16 = 5,
    TY_INT8 = 6,
    TY_STRING = 7,
    TY_COMPLEX64 = 8,
    TY_INT64 = 9,
    TY_BOOL = 10,
    TY_QINT8 = 11,
    TY_QUINT8 = 12,
    TY_QINT32 = 13,
    TY_BFLOAT16 = 14,
    TY_QINT16 = 15,
    TY_QUINT16 = 16,
    TY_UINT16 = 17,
    TY_COMPLEX128 = 18,
    TY_HALF = 19,
    TY_RESOURCE = 20,
    TY_VARIANT = 21,
    TY_UINT32 = 22,
    TY_UINT64 = 23,
};

struct ty_tensor;

/* Bytes of one element; 0 for strings, resources and variants. */
TY_API size_t ty_dtype_size(enum ty_dtype dtype);

/*
 * A tensor with undefined elements (strings: all empty), row-major.  NULL, with
 * TY_RESOURCE_EXHAUSTED or TY_INVALID_ARGUMENT, when it is too large or a dimension is
 * negative.
 */
TY_API struct ty_tensor *ty_tensor_new(enum ty_dtype dtype, const int64_t *dims, int rank,
                                       struct ty_status *status);

/* The same with a copy of `size` bytes, which must be what the elements take.  Not for
 * strings. */
TY_API struct ty_tensor *ty_tensor_new_copy(enum ty_dtype dtype, const int64_t *dims, int rank,
                                            const void *data, size_t size,
                                            struct ty_status *status);

/*
 * A tensor over the caller's memory, which must be aligned to 64 bytes to be used in place and
 * is copied otherwise.  `release(data, arg)` is called once when nobody needs it any more, from
 * any thread, also if this fails.
 */
TY_API struct ty_tensor *ty_tensor_new_over(enum ty_dtype dtype, const int64_t *dims, int rank,
                                            void *data, size_t size,
                                            void (*release)(void *data, void *arg), void *arg,
                                            struct ty_status *status);
TY_API void ty_tensor_free(struct ty_tensor *tensor); /* NULL is fine */

TY_API enum ty_dtype ty_tensor_dtype(const struct ty_tensor *tensor);
TY_API int ty_tensor_rank(const struct ty_tensor *tensor);
TY_API int64_t ty_tensor_dim(const struct ty_tensor *tensor, int index);
TY_API int64_t ty_tensor_count(const struct ty_tensor *tensor); /* elements */

/* The elements' bytes; borrowed from the tensor.  Not for strings. */
TY_API void *ty_tensor_data(const struct ty_tensor *tensor);
TY_API size_t ty_tensor_size(const struct ty_tensor *tensor);

/* Element `index` of a tensor of strings becomes a copy of `size` bytes. */
TY_API void ty_tensor_set_string(struct ty_tensor *tensor, int64_t index, const char *data,
                                 size_t size);

/* Element `index` of a tensor of strings; borrowed from the tensor, not NUL-terminated. */
TY_API const char *ty_tensor_string(const struct ty_tensor *tensor, int64_t index,
                                    size_t *size);

/* --- graphs ---------------------------------------------------------------------------------
 */

struct ty_graph;
struct ty_operation; /* of a graph, borrowed from it for its life */

/* Output `index` of an operation. */
struct ty_output {
    struct ty_operation *operation;
    int index;
};

TY_API struct ty_graph *ty_graph_new(void);

/* NULL is fine.  Sessions of the graph stay usable. */
TY_API void ty_graph_free(struct ty_graph *graph);

/* The operation of that name, NULL if there is none. */
TY_API struct ty_operation *ty_graph_operation(struct ty_graph *graph, const char *name);

/*
 * All operations in the order in which they were added: start with `*position` 0, until NULL.
 */
TY_API struct ty_operation *ty_graph_next_operation(struct ty_graph *graph, size_t *position);

/* What is known of an output's shape: its rank, -1 if not even that; dimensions of -1 are not
 * known.  At most `dims_max` are written. */
TY_API int ty_graph_shape(struct ty_graph *graph, struct ty_output output, int64_t *dims,
                          int dims_max, struct ty_status *status);

/* The graph as a serialized GraphDef. */
TY_API void ty_graph_export(struct ty_graph *graph, struct ty_buffer *graph_def,
                            struct ty_status *status);

struct ty_import_options;
TY_API struct ty_import_options *ty_import_options_new(void);
TY_API void ty_import_options_free(struct ty_import_options *options); /* NULL is fine */

/* Imported names get "PREFIX/" in front. */
TY_API void ty_import_options_set_prefix(struct ty_import_options *options, const char *prefix);

/* Inputs of the GraphDef that name output `index` of `name` will be `output` of the graph. */
TY_API void ty_import_options_map(struct ty_import_options *options, const char *name,
                                  int index, struct ty_output output);

/* Adds the nodes of a serialized GraphDef, all or nothing.  `options` may be NULL. */
TY_API void ty_graph_import(struct ty_graph *graph, const struct ty_buffer *graph_def,
                            const struct ty_import_options *options, struct ty_status *status);

/*
 * Adds operations that compute d sum(ys) / d xs, and sets `gradients[i]` (operation NULL where
 * x does not reach y).  `grad_ys` may be NULL: ones.
 */
TY_API void ty_add_gradients(struct ty_graph *graph, const struct ty_output *ys, int ys_count,
                             const struct ty_output *xs, int xs_count,
                             const struct ty_output *grad_ys, struct ty_output *gradients,
                             struct ty_status *status);

/* --- describing an operation ----------------------------------------------------------------
 */

struct ty_description;

/*
 * Begins an operation: set device, inputs and attributes, then ty_finish_operation(), which
 * reports all mistakes.  Attributes that follow from inputs, and those with defaults, may be
 * left out.
 */
TY_API struct ty_description *ty_new_operation(struct ty_graph *graph, const char *op,
                                               const char *name);
TY_API void ty_set_device(struct ty_description *description, const char *device);
TY_API void ty_add_input(struct ty_description *description, struct ty_output input);
TY_API void ty_add_input_list(struct ty_description *description,
                              const struct ty_output *inputs, int count);
TY_API void ty_add_control_input(struct ty_description *description,
                                 struct ty_operation *before);

/* Asks for the device of `operation`. */
TY_API void ty_colocate_with(struct ty_description *description,
                             struct ty_operation *operation);

/* Attributes; values are copied. */
TY_API void ty_set_attr_string(struct ty_description *description, const char *name,
                               const void *value, size_t size);
TY_API void ty_set_attr_string_list(struct ty_description *description, const char *name,
                                    const void *const *values, const size_t *sizes, int count);
TY_API void ty_set_attr_int(struct ty_description *description, const char *name,
                            int64_t value);
TY_API void ty_set_attr_int_list(struct ty_description *description, const char *name,
                                 const int64_t *values, int count);
TY_API void ty_set_attr_float(struct ty_description *description, const char *name,
                              float value);
TY_API void ty_set_attr_float_list(struct ty_description *description, const char *name,
                                   const float *values, int count);
TY_API void ty_set_attr_bool(struct ty_description *description, const char *name, bool value);
TY_API void ty_set_attr_bool_list(struct ty_description *description, const char *name,
                                  const bool *values, int count);
TY_API void ty_set_attr_type(struct ty_description *description, const char *name,
                             enum ty_dtype value);
TY_API void ty_set_attr_type_list(struct ty_description *description, const char *name,
                                  const enum ty_dtype *values, int count);
/* `rank` -1: unknown. */
TY_API void ty_set_attr_shape(struct ty_description *description, const char *name,
                              const int64_t *dims, int rank);
TY_API void ty_set_attr_shape_list(struct ty_description *description, const char *name,
                                   const int64_t *const *dims, const int *ranks, int count);
TY_API void ty_set_attr_tensor(struct ty_description *description, const char *name,
                               const struct ty_tensor *value);
/* The function of that name in the graph's library. */
TY_API void ty_set_attr_function(struct ty_description *description, const char *name,
                                 const char *function);

/* Adds the operation, and frees the description.  NULL on failure. */
TY_API struct ty_operation *ty_finish_operation(struct ty_description *description,
                                                struct ty_status *status);

/* --- looking at an operation ----------------------------------------------------------------
 */

/* Borrowed. */
TY_API const char *ty_operation_name(const struct ty_operation *operation);
TY_API const char *ty_operation_op(const struct ty_operation *operation);
TY_API const char *ty_operation_device(const struct ty_operation *operation);

TY_API int ty_operation_outputs(const struct ty_operation *operation);
TY_API enum ty_dtype ty_operation_output_type(const struct ty_operation *operation, int index);
TY_API int ty_operation_inputs(const struct ty_operation *operation);
TY_API enum ty_dtype ty_operation_input_type(const struct ty_operation *operation, int index);
TY_API struct ty_output ty_operation_input(const struct ty_operation *operation, int index);
TY_API int ty_operation_control_inputs(const struct ty_operation *operation);
TY_API struct ty_operation *ty_operation_control_input(const struct ty_operation *operation,
                                                       int index);

/*
 * Attributes that are one value.  They fail with TY_NOT_FOUND when there is none of that name,
 * with TY_INVALID_ARGUMENT when it is of another kind.
 */
TY_API int64_t ty_operation_attr_int(const struct ty_operation *operation, const char *name,
                                     struct ty_status *status);
TY_API float ty_operation_attr_float(const struct ty_operation *operation, const char *name,
                                     struct ty_status *status);
TY_API bool ty_operation_attr_bool(const struct ty_operation *operation, const char *name,
                                   struct ty_status *status);
TY_API enum ty_dtype ty_operation_attr_type(const struct ty_operation *operation,
                                            const char *name, struct ty_status *status);
/* Borrowed from the operation; NUL follows, which `*size` does not count. */
TY_API const char *ty_operation_attr_string(const struct ty_operation *operation,
                                            const char *name, size_t *size,
                                            struct ty_status *status);
/* A copy, owned by the caller. */
TY_API struct ty_tensor *ty_operation_attr_tensor(const struct ty_operation *operation,
                                                  const char *name, struct ty_status *status);

/* --- sessions -------------------------------------------------------------------------------
 */

struct ty_session;
struct ty_session_options;

TY_API struct ty_session_options *ty_session_options_new(void);
TY_API void ty_session_options_free(struct ty_session_options *options); /* NULL is fine */

/* Threads for kernels; 0: as many as the process may use. */
TY_API void ty_session_options_set_threads(struct ty_session_options *options, int threads);

/* What the tensors of one step may take in all; 0: no limit but the machine's. */
TY_API void ty_session_options_set_memory(struct ty_session_options *options, int64_t bytes);

/*
 * Switches passes of the optimiser off: names with commas between them, as `trainyard graph
 * show` lists them; "all" for all.  Fails with TY_NOT_FOUND.
 */
TY_API void ty_session_options_disable_passes(struct ty_session_options *options,
                                              const char *names, struct ty_status *status);

/*
 * A session for the graph; operations that are added later can be run too.  `options` may be
 * NULL.  Variables live in the session.
 */
TY_API struct ty_session *ty_session_new(struct ty_graph *graph,
                                         const struct ty_session_options *options,
                                         struct ty_status *status);

/* NULL is fine.  Nobody runs it. */
TY_API void ty_session_free(struct ty_session *session);

/*
 * Runs what outputs and targets need.  `inputs` get `input_values` in place of what the graph
 * says; `output_values` get tensors owned by the caller, on failure none.  With `run_metadata`
 * the step is traced, and the buffer filled with a serialized RunMetadata.
 */
TY_API void ty_session_run(struct ty_session *session, const struct ty_output *inputs,
                           struct ty_tensor *const *input_values, int inputs_count,
                           const struct ty_output *outputs, struct ty_tensor **output_values,
                           int outputs_count, struct ty_operation *const *targets,
                           int targets_count, struct ty_buffer *run_metadata,
                           struct ty_status *status);

/* --- ops of one's own -----------------------------------------------------------------------
 */

/*
 * Loads a shared library and calls its function
 *
 *     void ty_library_init(struct ty_status *status);
 *
 * which registers ops and kernels by the functions below.  The library stays loaded.  Call it
 * before graphs use the ops.  Fails with TY_NOT_FOUND, TY_ALREADY_EXISTS, and as the library
 * says.
 */
TY_API void ty_load_library(const char *path, struct ty_status *status);

struct ty_op;
struct ty_shape_context;

/* Begins the definition of an op. */
TY_API struct ty_op *ty_op_new(const char *name);

/* "x: T", "values: N * T", "resource: resource", as in TensorFlow's op registry. */
TY_API void ty_op_add_input(struct ty_op *op, const char *input);
TY_API void ty_op_add_output(struct ty_op *op, const char *output);

/* "T: {float, double}", "rate: float = 0.5", "mode: {'fast', 'exact'} = 'fast'". */
TY_API void ty_op_add_attr(struct ty_op *op, const char *attr);

/* Not folded into constants, not merged with an equal one. */
TY_API void ty_op_set_stateful(struct ty_op *op);

/* What is known of its outputs' shapes before it runs; without it, nothing. */
TY_API void ty_op_set_shape(struct ty_op *op, void (*infer)(struct ty_shape_context *context,
                                                            struct ty_status *status));

/* Registers the op and frees the definition.  Fails with TY_ALREADY_EXISTS,
 * TY_INVALID_ARGUMENT. */
TY_API void ty_op_register(struct ty_op *op, struct ty_status *status);

/* The rank of an input, -1 when unknown; a dimension of it, -1 when unknown. */
TY_API int ty_shape_rank(const struct ty_shape_context *context, int input);
TY_API int64_t ty_shape_dim(const struct ty_shape_context *context, int input, int index);

/* What an output will be like; dimensions of -1 are unknown. */
TY_API void ty_shape_set(struct ty_shape_context *context, int output, const int64_t *dims,
                         int rank);
TY_API void ty_shape_set_same(struct ty_shape_context *context, int output, int input);

struct ty_kernel;
struct ty_kernel_construction;
struct ty_kernel_context;

/*
 * Begins the definition of a kernel for an op on devices of a type ("CPU").  `create` (may be
 * NULL) is called once for each node that is to run and gives its state; `compute` at each run,
 * perhaps by several threads at once with states of their own; `release` (may be NULL) at the
 * end.
 */
TY_API struct ty_kernel *
ty_kernel_new(const char *op, const char *device,
              void *(*create)(struct ty_kernel_construction *construction),
              void (*compute)(void *state, struct ty_kernel_context *context),
              void (*release)(void *state));

/* Only for nodes whose attribute `attr` is one of these types. */
TY_API void ty_kernel_set_types(struct ty_kernel *kernel, const char *attr,
                                const enum ty_dtype *types, int count);

/* Registers the kernel and frees the definition.  Fails with TY_NOT_FOUND, INVALID_ARGUMENT. */
TY_API void ty_kernel_register(struct ty_kernel *kernel, struct ty_status *status);

/* In create: attributes of the node, and a way to refuse it. */
TY_API const struct ty_operation *
ty_kernel_construction_operation(const struct ty_kernel_construction *construction);
TY_API void ty_kernel_construction_fail(struct ty_kernel_construction *construction,
                                        enum ty_code code, const char *message);

/* In compute: the inputs, borrowed for the call; NULL for a reference without value. */
TY_API int ty_kernel_inputs(const struct ty_kernel_context *context);
TY_API const struct ty_tensor *ty_kernel_input(const struct ty_kernel_context *context,
                                               int index);

/*
 * Gives output `index` memory for elements of the output's type; borrowed for the call, to be
 * filled.  NULL when there is none: return then, the failure is noted.
 */
TY_API struct ty_tensor *ty_kernel_output(struct ty_kernel_context *context, int index,
                                          const int64_t *dims, int rank);

/* Makes the node fail; the first failure stays. */
TY_API void ty_kernel_fail(struct ty_kernel_context *context, enum ty_code code,
                           const char *message);

/* How many threads the kernel may use. */
TY_API int ty_kernel_threads(const struct ty_kernel_context *context);

#ifdef __cplusplus
}
#endif

#endif
