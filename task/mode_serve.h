/* mode_serve.h - a task that serves MasterService and WorkerService. */
#pragma once

#include "base/base.h"

/* Whether these arguments ask for it: they begin with an option, not with a mode. */
bool mode_serve_wanted(int argc, char **argv);
int mode_serve(int argc, char **argv);
