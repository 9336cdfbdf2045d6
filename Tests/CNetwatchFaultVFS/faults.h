// Decides which calls fail.
#ifndef NETWATCH_FAULTS_H
#define NETWATCH_FAULTS_H

#include "CNetwatchFaultVFS.h"

// Counts a call on a file, whose kinds are the bits of `calls`. Returns 1 if the call must fail, and then sets `fault`.
int netwatch_fault_strikes(const char *path, unsigned calls, struct netwatch_fault *fault);

// Kills the process with SIGKILL. Does not return.
void netwatch_fault_kill(void);

#endif
