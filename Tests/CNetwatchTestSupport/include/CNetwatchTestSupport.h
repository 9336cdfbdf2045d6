#ifndef CNETWATCH_TEST_SUPPORT_H
#define CNETWATCH_TEST_SUPPORT_H

/// Makes `socket(AF_NETLINK, …)` fail with EPERM on the calling thread, on every thread it starts from
/// then on, and in every program those start: what a sandbox's seccomp filter does. Needs no privilege and
/// cannot be undone. Returns 0, or an error number.
int netwatch_deny_netlink(void);

#endif
