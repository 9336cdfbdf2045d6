// Which call fails.
#ifndef NETWATCH_FAULTS_H
#define NETWATCH_FAULTS_H

#include "CNetwatchFaultVFS.h"

// Counts a call on a file, which may be of several kinds. Returns 1 when it is to fail, and with what.
int netwatch_fault_strikes(const char *path, unsigned calls, struct netwatch_fault *fault);

// For a fault that kills.
void netwatch_fault_kill(void);

#endif
