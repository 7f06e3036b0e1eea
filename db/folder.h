/*
 * folder.h - the folder of a server: made, held by one process at a time, and on disk.
 */
#pragma once

#include "base/base.h"

struct error;

/* Made with mode 0700 if it is absent. */
bool db_folder_make(const char *folder, struct error *err) CHECKED;

/*
 * Holds the folder until the returned descriptor is closed; -1 on failure: PRECONDITION when
 * another process holds it ("another trainyard serve (pid 7) uses DIR").
 */
int db_folder_lock(const char *folder, struct error *err) CHECKED;

/* The names of the files must survive a power cut as their content does. */
bool db_folder_sync(const char *folder, struct error *err) CHECKED;
