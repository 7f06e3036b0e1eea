/* checkpoint.h - how fast variables are saved and restored. */
#pragma once

/* Prints one JSON object: bytes per second of a save and of a restore, medians of 5. */
void checkpoint_bench(void);
