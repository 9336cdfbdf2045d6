// Selects the calls that fail.
#ifndef NETWATCH_FAULTS_H
#define NETWATCH_FAULTS_H

#include "CNetwatchFaultVFS.h"

// Counts a call on a file; `calls` can have several bits. Returns 1 if the call must fail, and sets `fault`.
int netwatch_fault_strikes(const char *path, unsigned calls, struct netwatch_fault *fault);

// Kills the process with SIGKILL, for a fault with `kills`. Does not return.
void netwatch_fault_kill(void);

#endif
