/* mode_gpus.h - trainyard-task gpus: what NVIDIA's driver says of this machine's GPUs. */
#pragma once

/*
 * Prints a table, or with --json {"gpus": [{"uuid", "name", "memory_bytes", "processes": [PID],
 * "error"}]}; none where there is no driver.  The agent runs it in a process of its own, which
 * may hang in a driver without harm.  $TRAINYARD_NVML names another library than
 * libnvidia-ml.so.1.
 */
int mode_gpus(int argc, char **argv);
