#ifndef CNETWATCH_TEST_SUPPORT_H
#define CNETWATCH_TEST_SUPPORT_H

/// Makes `socket(AF_NETLINK, …)` fail with EPERM, as the seccomp filter of a sandbox does. Affects the calling thread,
/// the threads it starts later, and the programs they start. Needs no privilege and cannot be undone. Returns 0 or an
/// error number.
int netwatch_deny_netlink(void);

/// Adds or removes an unreachable route for 128.0.0.0/1 in the network namespace of an IPv4 socket. The route takes
/// precedence over a default route. Takes microseconds, where ip(8) takes milliseconds. Needs CAP_NET_ADMIN in the
/// namespace. Returns 0 or an error number: EEXIST or ESRCH if the route is already present or absent.
int netwatch_set_upper_half_unreachable(int socket, int is_unreachable);

/// Adds, replaces or removes a route to one IPv4 address in the calling thread's network namespace. Avoids the
/// milliseconds that ip(8) takes. `type` is `RTN_UNICAST` (1), `RTN_BLACKHOLE` (6) or `RTN_PROHIBIT` (8); `gateway` may
/// be NULL. Returns 0 or an error number.
int netwatch_change_route(int is_added, int type, const char *destination, const char *gateway);

/// Adds an IPv4 address with a 24-bit prefix to an interface, or removes it. Returns 0 or an error number.
int netwatch_change_address(int is_added, const char *interface, const char *address);

/// Sets an interface up or down. Returns 0 or an error number.
int netwatch_set_link(const char *interface, int is_up);

/// Opens a netlink socket that receives link and address notifications of the calling thread's network namespace
/// (rtnetlink(7)). Returns its descriptor, or -1 with errno.
int netwatch_open_announcements(void);

#endif
