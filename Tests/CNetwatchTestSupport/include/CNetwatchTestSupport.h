#ifndef CNETWATCH_TEST_SUPPORT_H
#define CNETWATCH_TEST_SUPPORT_H

/// Makes a program that posix_spawn(3) starts close all inherited descriptors from `first` on. Returns 0 or an error
/// number. `actions` is a posix_spawn_file_actions_t, whose header Swift would import as a part of this module.
int netwatch_close_inherited(void *actions, int first);

/// Makes `socket(AF_NETLINK, …)` fail with EPERM, as the seccomp filter of a sandbox does.
///
/// Affects the calling thread, the threads that it starts later, and the programs that these threads start. Cannot be
/// undone. Needs no privilege. Returns 0 or an error number.
int netwatch_deny_netlink(void);

/// Adds or removes an unreachable route for 128.0.0.0/1 in the network namespace of an IPv4 socket.
///
/// The route takes precedence over a default route. A call takes microseconds; ip(8) takes milliseconds. Needs
/// CAP_NET_ADMIN in the namespace. Returns 0 or an error number: EEXIST if the route to add exists, ESRCH if the route
/// to remove does not exist.
int netwatch_set_upper_half_unreachable(int socket, int is_unreachable);

/// Adds, replaces or removes a route to one IPv4 address in the calling thread's network namespace.
///
/// Faster than ip(8), which takes milliseconds. `type` is `RTN_UNICAST` (1), `RTN_BLACKHOLE` (6) or `RTN_PROHIBIT` (8).
/// `gateway` may be NULL. Returns 0 or an error number.
int netwatch_change_route(int is_added, int type, const char *destination, const char *gateway);

/// Adds or removes an IPv4 address with a 24-bit prefix on an interface. Returns 0 or an error number.
int netwatch_change_address(int is_added, const char *interface, const char *address);

/// Sets an interface up or down. Returns 0 or an error number.
int netwatch_set_link(const char *interface, int is_up);

/// Opens a netlink socket that receives the kernel's notifications (rtnetlink(7)) of links and addresses in the calling
/// thread's network namespace. Returns its descriptor, or -1 with errno.
int netwatch_open_announcements(void);

/// Connects a unix socket as another user, who is a member of one group. The server sees this user as its peer
/// (unix(7), `SO_PEERCRED` and `SO_PEERGROUPS`). Changes the calling thread only, and only during the call. Needs root.
/// Returns 0 or an error number.
int netwatch_connect_as(int socket, const void *address, unsigned int length, unsigned int user, unsigned int group);

#endif
