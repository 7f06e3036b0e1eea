/* fabric.c - UCX, loaded at run time. */

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include <ucp/api/ucp.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "runtime/worker/fabric.h"

#define LIBRARY "libucp.so.0"

/* What is used of libucp, and of libucs, which comes with it. */
#define UCP_FUNCTIONS(of)                                                                      \
    of(ucp_config_read) of(ucp_config_release) of(ucp_init_version) of(ucp_cleanup)            \
        of(ucp_worker_create) of(ucp_worker_destroy) of(ucp_worker_get_address)                \
            of(ucp_worker_release_address) of(ucp_worker_progress) of(ucp_worker_arm)          \
                of(ucp_worker_signal) of(ucp_worker_get_efd) of(ucp_mem_map) of(ucp_mem_unmap) \
                    of(ucp_rkey_pack) of(ucp_rkey_buffer_release) of(ucp_ep_create)            \
                        of(ucp_ep_close_nbx) of(ucp_ep_rkey_unpack) of(ucp_rkey_destroy)       \
                            of(ucp_get_nbx) of(ucp_request_check_status) of(ucp_request_free)  \
                                of(ucp_request_cancel) of(ucs_status_string)

static struct {
#define POINTER(name) __typeof__(name) *name;
    UCP_FUNCTIONS(POINTER)
#undef POINTER
} ucx;

static struct {
    pthread_mutex_t lock; /* guards: is_open changing */
    _Atomic bool is_open;
    _Atomic bool closing;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *address;
    size_t address_size;
    int events; /* readable when the worker has something to do */
    pthread_t thread;
} fabric = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct fabric_memory {
    ucp_mem_h memory;
};

struct fabric_peer {
    atomic_int holders;
    pthread_mutex_t lock;        /* guards: endpoint */
    ucp_ep_h endpoint;           /* NULL: given up */
    _Atomic ucs_status_t failed; /* UCS_OK: it has not */
};

/* --- the library --- */

static bool load(struct error *err)
{
    static void *library; /* never unloaded: it has threads and hooks of its own */
    if (!library)
        library = dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL);
    if (!library)
        return fail(err, NOT_FOUND, "UCX cannot be loaded: %s", dlerror());
#define FIND(name)                                                                             \
    if (!(*(void **)&ucx.name = dlsym(library, #name)))                                        \
        return fail(err, NOT_FOUND, LIBRARY " has no " #name);
    UCP_FUNCTIONS(FIND)
#undef FIND
    return true;
}

static bool failed(ucs_status_t status, const char *what, struct error *err)
{
    return fail(err, UNAVAILABLE, "UCX cannot %s: %s", what, ucx.ucs_status_string(status));
}

/* --- the thread --- */

static void *fabric_main(void *arg)
{
    (void)arg;
    while (!atomic_load(&fabric.closing)) {
        while (ucx.ucp_worker_progress(fabric.worker)) {
        }
        if (ucx.ucp_worker_arm(fabric.worker) != UCS_OK)
            continue; /* something came meanwhile */
        struct pollfd ready = {.fd = fabric.events, .events = POLLIN};
        poll(&ready, 1, 1000);
    }
    return NULL;
}

/* --- opening --- */

static bool open_context(struct error *err)
{
    ucp_config_t *config;
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES |
                                               UCP_PARAM_FIELD_MT_WORKERS_SHARED |
                                               UCP_PARAM_FIELD_NAME,
                                 .features = UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP,
                                 .mt_workers_shared = 1,
                                 .name = "trainyard"};
    ucs_status_t status = ucx.ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK)
        return failed(status, "read its configuration", err);
    status =
        ucx.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &fabric.context);
    ucx.ucp_config_release(config);
    return status == UCS_OK || failed(status, "begin", err);
}

static bool open_worker(struct error *err)
{
    const ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_MULTI};
    ucs_status_t status = ucx.ucp_worker_create(fabric.context, &params, &fabric.worker);
    if (status != UCS_OK)
        return failed(status, "find a way to other machines", err);
    status = ucx.ucp_worker_get_address(fabric.worker, &fabric.address, &fabric.address_size);
    if (status == UCS_OK && fabric.address_size > FABRIC_ADDRESS_BYTES_MAX)
        status = UCS_ERR_BUFFER_TOO_SMALL;
    if (status == UCS_OK)
        status = ucx.ucp_worker_get_efd(fabric.worker, &fabric.events);
    if (status == UCS_OK && pthread_create(&fabric.thread, NULL, fabric_main, NULL))
        status = UCS_ERR_NO_RESOURCE;
    if (status == UCS_OK)
        return true;
    ucx.ucp_worker_destroy(fabric.worker);
    return failed(status, "say where this process is reached", err);
}

bool fabric_open(struct error *err)
{
    pthread_mutex_lock(&fabric.lock);
    bool ok = fabric.is_open;
    if (!ok && load(err) && open_context(err)) {
        atomic_store(&fabric.closing, false);
        ok = open_worker(err);
        if (!ok)
            ucx.ucp_cleanup(fabric.context);
        atomic_store(&fabric.is_open, ok);
    }
    pthread_mutex_unlock(&fabric.lock);
    return ok;
}

bool fabric_open_wanted(struct error *err)
{
    const char *wanted = getenv(FABRIC_VARIABLE);
    if (!wanted || !*wanted)
        return true;
    if (strcmp(wanted, "ucx") != 0)
        return fail(err, INVALID, FABRIC_VARIABLE " is '%.40s', allowed: ucx", wanted);
    return fabric_open(err) ||
           error_prefix(err, FABRIC_VARIABLE " is ucx (Debian's package is libucx0): ");
}

bool fabric_is_open(void)
{
    return atomic_load(&fabric.is_open);
}

void fabric_close(void)
{
    pthread_mutex_lock(&fabric.lock);
    if (fabric.is_open) {
        atomic_store(&fabric.is_open, false);
        atomic_store(&fabric.closing, true);
        ucx.ucp_worker_signal(fabric.worker);
        pthread_join(fabric.thread, NULL);
        ucx.ucp_worker_release_address(fabric.worker, fabric.address);
        ucx.ucp_worker_destroy(fabric.worker);
        ucx.ucp_cleanup(fabric.context);
    }
    pthread_mutex_unlock(&fabric.lock);
}

const void *fabric_address(size_t *size)
{
    *size = fabric.address_size;
    return fabric.address;
}

/* --- lending --- */

struct fabric_memory *fabric_lend(const void *data, size_t size, struct fabric_key *key)
{
    const ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                                                       UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                         .address = (void *)data,
                                         .length = size};
    ucp_mem_h memory;
    void *packed;
    size_t packed_size;
    if (!fabric_is_open() || ucx.ucp_mem_map(fabric.context, &params, &memory) != UCS_OK)
        return NULL;
    if (ucx.ucp_rkey_pack(fabric.context, memory, &packed, &packed_size) != UCS_OK) {
        ucx.ucp_mem_unmap(fabric.context, memory);
        return NULL;
    }
    bool fits = packed_size <= FABRIC_KEY_BYTES_MAX;
    if (fits) {
        memcpy(key->bytes, packed, packed_size);
        key->size = packed_size;
    }
    ucx.ucp_rkey_buffer_release(packed);
    if (!fits) {
        ucx.ucp_mem_unmap(fabric.context, memory);
        return NULL;
    }
    struct fabric_memory *lent = alloc_bytes(sizeof(*lent));
    lent->memory = memory;
    return lent;
}

void fabric_take_back(struct fabric_memory *memory)
{
    if (!memory)
        return;
    ucx.ucp_mem_unmap(fabric.context, memory->memory);
    free(memory);
}

/* --- reading --- */

static void peer_failed(void *arg, ucp_ep_h endpoint, ucs_status_t status)
{
    struct fabric_peer *peer = arg;
    (void)endpoint;
    atomic_store(&peer->failed, status);
}

struct fabric_peer *fabric_connect(const void *address, size_t size, struct error *err)
{
    if (!size || size > FABRIC_ADDRESS_BYTES_MAX)
        return fail_null(err, INVALID, "an address of UCX has 1 to %d bytes, not %zu",
                         FABRIC_ADDRESS_BYTES_MAX, size);
    struct fabric_peer *peer = alloc_bytes(sizeof(*peer));
    atomic_store(&peer->holders, 1);
    pthread_mutex_init(&peer->lock, NULL);
    const ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                                  UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                                  UCP_EP_PARAM_FIELD_ERR_HANDLER,
                                    .address = address,
                                    .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                                    .err_handler = {peer_failed, peer}};
    ucs_status_t status = ucx.ucp_ep_create(fabric.worker, &params, &peer->endpoint);
    if (status == UCS_OK)
        return peer;
    pthread_mutex_destroy(&peer->lock);
    free(peer);
    (void)failed(status, "reach another task", err);
    return NULL;
}

/* Drives what is under way until it is done; the status, UCS_INPROGRESS when time is over. */
static ucs_status_t wait_for(ucs_status_ptr_t request, int64_t limit_ms)
{
    if (!UCS_PTR_IS_PTR(request))
        return UCS_PTR_STATUS(request);
    uint64_t until_us = clock_monotonic_us() + (uint64_t)limit_ms * 1000;
    ucs_status_t status;
    while ((status = ucx.ucp_request_check_status(request)) == UCS_INPROGRESS &&
           clock_monotonic_us() < until_us)
        ucx.ucp_worker_progress(fabric.worker);
    return status;
}

/* What is still under way would write into memory that is the caller's again: its endpoint is
 * closed first, by which UCX gives it up. */
static void give_up(struct fabric_peer *peer, ucs_status_ptr_t request)
{
    const ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                       .flags = UCP_EP_CLOSE_FLAG_FORCE};
    ucs_status_ptr_t closing = ucx.ucp_ep_close_nbx(peer->endpoint, &force);
    peer->endpoint = NULL;
    (void)wait_for(closing, FABRIC_READ_MS);
    if (UCS_PTR_IS_PTR(closing))
        ucx.ucp_request_free(closing);
    if (UCS_PTR_IS_PTR(request)) {
        (void)wait_for(request, FABRIC_READ_MS);
        ucx.ucp_request_free(request);
    }
}

struct fabric_peer *fabric_share(struct fabric_peer *peer)
{
    atomic_fetch_add(&peer->holders, 1);
    return peer;
}

void fabric_disconnect(struct fabric_peer *peer)
{
    if (!peer || atomic_fetch_sub(&peer->holders, 1) > 1)
        return;
    if (peer->endpoint)
        give_up(peer, NULL);
    pthread_mutex_destroy(&peer->lock);
    free(peer);
}

/* With the peer's lock held: what one read gives up is no other's. */
static bool read_locked(struct fabric_peer *peer, uint64_t address,
                        const struct fabric_key *key, void *to, size_t size, struct error *err)
{
    const ucp_request_param_t plain = {0};
    ucp_rkey_h rkey;
    if (!peer->endpoint || atomic_load(&peer->failed) != UCS_OK)
        return fail(err, UNAVAILABLE, "the connection by UCX has broken");
    ucs_status_t status = ucx.ucp_ep_rkey_unpack(peer->endpoint, key->bytes, &rkey);
    if (status != UCS_OK)
        return failed(status, "read a key", err);
    ucs_status_ptr_t request = ucx.ucp_get_nbx(peer->endpoint, to, size, address, rkey, &plain);
    status = wait_for(request, FABRIC_READ_MS);
    if (status == UCS_INPROGRESS) {
        give_up(peer, request);
        status = UCS_ERR_TIMED_OUT;
    } else if (UCS_PTR_IS_PTR(request)) {
        ucx.ucp_request_free(request);
    }
    ucx.ucp_rkey_destroy(rkey);
    return status == UCS_OK || failed(status, "read another task's memory", err);
}

bool fabric_read(struct fabric_peer *peer, uint64_t address, const struct fabric_key *key,
                 void *to, size_t size, struct error *err)
{
    if (!key->size || key->size > FABRIC_KEY_BYTES_MAX)
        return fail(err, INVALID, "a key of UCX has 1 to %d bytes, not %zu",
                    FABRIC_KEY_BYTES_MAX, key->size);
    pthread_mutex_lock(&peer->lock);
    bool ok = read_locked(peer, address, key, to, size, err);
    pthread_mutex_unlock(&peer->lock);
    return ok;
}
