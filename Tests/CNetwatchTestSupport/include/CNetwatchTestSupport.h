#ifndef CNETWATCH_TEST_SUPPORT_H
#define CNETWATCH_TEST_SUPPORT_H

/// Makes `socket(AF_NETLINK, …)` fail with EPERM on the calling thread, on every thread it starts from
/// then on, and in every program those start: what a sandbox's seccomp filter does. Needs no privilege and
/// cannot be undone. Returns 0, or an error number.
int netwatch_deny_netlink(void);

/// Adds an unreachable route for 128.0.0.0/1, which is nearer than a default route, or takes it away, in the network
/// namespace of an IPv4 socket: some microseconds, where ip(8) takes milliseconds. Needs CAP_NET_ADMIN there. Returns
/// 0, or an error number: EEXIST or ESRCH when it is so already.
int netwatch_set_upper_half_unreachable(int socket, int is_unreachable);

/// Opens a netlink socket that receives the kernel's announcements of links and addresses in the calling thread's
/// network namespace (rtnetlink(7)). Returns its descriptor, or -1 with errno.
int netwatch_open_announcements(void);

#endif
