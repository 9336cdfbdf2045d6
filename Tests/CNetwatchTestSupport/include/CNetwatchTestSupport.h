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

/// Adds or replaces a route to one IPv4 address, or takes it away, in the calling thread's network namespace, without the
/// milliseconds that ip(8) takes. `type` is one of `RTN_UNICAST` (1), `RTN_BLACKHOLE` (6) and `RTN_PROHIBIT` (8); `gateway`
/// may be NULL. Returns 0, or an error number.
int netwatch_change_route(int is_added, int type, const char *destination, const char *gateway);

/// Adds an IPv4 address with a prefix of 24 bits to an interface, or takes it away. Returns 0, or an error number.
int netwatch_change_address(int is_added, const char *interface, const char *address);

/// Sets an interface up or down. Returns 0, or an error number.
int netwatch_set_link(const char *interface, int is_up);

/// Opens a netlink socket that receives the kernel's announcements of links and addresses in the calling thread's
/// network namespace (rtnetlink(7)). Returns its descriptor, or -1 with errno.
int netwatch_open_announcements(void);

#endif
