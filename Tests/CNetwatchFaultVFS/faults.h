// Which call fails.
#ifndef NETWATCH_FAULTS_H
#define NETWATCH_FAULTS_H

// Counts a call on a file. Returns 1 when it is to fail, and with what.
int netwatch_fault_strikes(const char *path, unsigned call, int *result);

#endif
