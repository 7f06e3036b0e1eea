/* fake_nvml.c - a library in the place of NVIDIA's: what it says of GPUs is in the file
 * $FAKE_NVML.
 *
 * A line a GPU: UUID|NAME|MEMORY BYTES|PID,PID...|BYTES USED|PER CENT ; UUID|lost for one that
 * does not answer; a line "hang" and nothing answers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX 16
static char lines[MAX][256];
static unsigned count;

struct memory {
    unsigned long long total, free, used;
};
struct process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};

static const char *part(const char *line, int n)
{
    static char out[256];
    for (; n && line; n--)
        line = (line = strchr(line, '|')) ? line + 1 : NULL;
    snprintf(out, sizeof(out), "%s", line ? line : "");
    out[strcspn(out, "|\n")] = 0;
    return out;
}
static int lost(const char *line)
{
    return strcmp(part(line, 1), "lost") == 0 ? 15 : 0;
}
int nvmlInit_v2(void)
{
    FILE *file = fopen(getenv("FAKE_NVML"), "r");
    while (file && count < MAX && fgets(lines[count], sizeof(lines[0]), file)) {
        if (strncmp(lines[count], "hang", 4) == 0)
            sleep(1000);
        count++;
    }
    return file ? fclose(file) : 9;
}
int nvmlShutdown(void)
{
    return 0;
}
int nvmlDeviceGetCount_v2(unsigned *out)
{
    *out = count;
    return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **out)
{
    *out = lines[i];
    return 0;
}
int nvmlDeviceGetUUID(void *gpu, char *out, unsigned size)
{
    snprintf(out, size, "%s", part(gpu, 0));
    return 0;
}
int nvmlDeviceGetName(void *gpu, char *out, unsigned size)
{
    snprintf(out, size, "%s", part(gpu, 1));
    return lost(gpu);
}
int nvmlDeviceGetMemoryInfo(void *gpu, struct memory *out)
{
    out->total = strtoull(part(gpu, 2), NULL, 10);
    out->used = strtoull(part(gpu, 4), NULL, 10);
    return lost(gpu);
}
int nvmlDeviceGetUtilizationRates(void *gpu, unsigned out[2])
{
    out[0] = (unsigned)atoi(part(gpu, 5));
    out[1] = 0;
    return lost(gpu);
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *gpu, unsigned *n, struct process *out)
{
    char pids[256];
    unsigned found = 0;
    snprintf(pids, sizeof(pids), "%s", part(gpu, 3));
    for (char *pid = strtok(pids, ","); pid && found < *n; pid = strtok(NULL, ","))
        out[found++] = (struct process){.pid = (unsigned)atoi(pid)};
    *n = found;
    return lost(gpu);
}
const char *nvmlErrorString(int code)
{
    return code == 15 ? "GPU is lost" : code ? "Driver Not Loaded" : "Success";
}
