/* mode_gpus.c - NVIDIA's management library, loaded when it is there. */

#include "task/mode_gpus.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <jansson.h>

#include "base/base.h"

#define LIBRARY "libnvidia-ml.so.1"
#define TEXT_BYTES 96
#define PROCESSES_MAX 64

/* As NVML's documentation (API reference of version 12) has them. */
typedef void *device;
struct memory {
    unsigned long long total, free, used;
};
struct utilization {
    unsigned gpu, memory; /* per cent of the time */
};
struct process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};

struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *);
    int (*at)(unsigned, device *);
    int (*uuid)(device, char *, unsigned);
    int (*name)(device, char *, unsigned);
    int (*memory)(device, struct memory *);
    int (*utilization)(device, struct utilization *);
    int (*processes)(device, unsigned *, struct process *);
    const char *(*text)(int);
};

static bool load(struct nvml *nvml, const char **why)
{
    const char *path = getenv("TRAINYARD_NVML");
    void *library = dlopen(path && *path ? path : LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        *why = dlerror();
        return false;
    }
    const struct {
        const char *name;
        void **place;
    } functions[] = {
        {"nvmlInit_v2", (void **)&nvml->init},
        {"nvmlShutdown", (void **)&nvml->shutdown},
        {"nvmlDeviceGetCount_v2", (void **)&nvml->count},
        {"nvmlDeviceGetHandleByIndex_v2", (void **)&nvml->at},
        {"nvmlDeviceGetUUID", (void **)&nvml->uuid},
        {"nvmlDeviceGetName", (void **)&nvml->name},
        {"nvmlDeviceGetMemoryInfo", (void **)&nvml->memory},
        {"nvmlDeviceGetUtilizationRates", (void **)&nvml->utilization},
        {"nvmlDeviceGetComputeRunningProcesses_v3", (void **)&nvml->processes},
        {"nvmlErrorString", (void **)&nvml->text},
    };
    for (int i = 0; i < ARRAY_LEN(functions); i++) {
        *functions[i].place = dlsym(library, functions[i].name);
        if (!*functions[i].place) {
            *why = dlerror();
            return false;
        }
    }
    return true;
}

/* One GPU; what it does not tell is its "error". */
static json_t *gpu_json(const struct nvml *nvml, unsigned index)
{
    device gpu;
    char uuid[TEXT_BYTES] = "", name[TEXT_BYTES] = "";
    struct memory memory = {0};
    struct utilization rates;
    struct process processes[PROCESSES_MAX];
    unsigned count = PROCESSES_MAX;
    json_t *pids = json_array();
    int code = nvml->at(index, &gpu);
    code = code ? code : nvml->uuid(gpu, uuid, sizeof(uuid));
    code = code ? code : nvml->name(gpu, name, sizeof(name));
    code = code ? code : nvml->memory(gpu, &memory);
    code = code ? code : nvml->processes(gpu, &count, processes);
    for (unsigned i = 0; !code && i < count && i < PROCESSES_MAX; i++)
        json_array_append_new(pids, json_integer(processes[i].pid));
    json_t *json =
        json_pack("{s:s, s:s, s:I, s:I, s:o, s:s}", "uuid", uuid, "name", name, "memory_bytes",
                  (json_int_t)memory.total, "memory_used_bytes", (json_int_t)memory.used,
                  "processes", pids, "error", code ? nvml->text(code) : "");
    if (!code && nvml->utilization(gpu, &rates) == 0) /* parts of a GPU (MIG) have none */
        json_object_set_new(json, "utilization", json_integer(rates.gpu));
    return json;
}

static void print_table(const json_t *gpus)
{
    size_t i;
    json_t *gpu;
    json_array_foreach(gpus, i, gpu)
    {
        const char *error = json_string_value(json_object_get(gpu, "error"));
        json_int_t bytes = json_integer_value(json_object_get(gpu, "memory_bytes"));
        printf("%zu  %s  %s  %.1f GiB, %zu processes%s%s\n", i,
               json_string_value(json_object_get(gpu, "uuid")),
               json_string_value(json_object_get(gpu, "name")), (double)bytes / (1 << 30),
               json_array_size(json_object_get(gpu, "processes")), *error ? ": " : "", error);
    }
    if (!json_array_size(gpus))
        printf("there are no GPUs\n");
}

int mode_gpus(int argc, char **argv)
{
    bool json = argc == 1 && !strcmp(argv[0], "--json");
    if (argc && !json) {
        fprintf(stderr, "usage: trainyard-task gpus [--json]\n");
        return 2;
    }
    struct nvml nvml;
    const char *why = "";
    unsigned count = 0;
    json_t *gpus = json_array();
    bool loaded = load(&nvml, &why);
    int code = loaded ? nvml.init() : 0;
    if (loaded && !code && (code = nvml.count(&count)) == 0) {
        for (unsigned i = 0; i < count; i++)
            json_array_append_new(gpus, gpu_json(&nvml, i));
        nvml.shutdown();
    }
    if (code)
        why = nvml.text(code);
    if (json) {
        json_t *answer = json_pack("{s:O, s:s}", "gpus", gpus, "error", why ? why : "");
        char *text = json_dumps(answer, JSON_COMPACT);
        printf("%s\n", text);
        free(text);
        json_decref(answer);
    } else {
        if (why && *why)
            fprintf(stderr, "trainyard-task: %s\n", why);
        print_table(gpus);
    }
    json_decref(gpus);
    return 0;
}
