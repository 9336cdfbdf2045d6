// libnl-3, libnl-route-3 and the kernel's rtnetlink structures.
#ifndef CNETWATCH_NETLINK_SHIM_H
#define CNETWATCH_NETLINK_SHIM_H

#include <linux/fib_rules.h>
#include <linux/filter.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netconf.h>
#include <linux/netlink.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/object.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/link/vxlan.h>
#include <netlink/socket.h>
#include <string.h>
#include <sys/socket.h>

// Parses one message with libnl-route-3. The headers of libnl do not declare its parsers. They can be reached only
// through `nl_msg_parse`, which needs the message in a `struct nl_msg`.
static inline int netwatch_parse_route_object(
    struct nlmsghdr *header,
    void (*visit)(struct nl_object *, void *),
    void *context
) {
    struct nl_msg *message = nlmsg_convert(header);
    if (!message) return -NLE_NOMEM;
    // The protocol selects the parsers, because message types have a meaning only within a protocol.
    nlmsg_set_proto(message, NETLINK_ROUTE);
    int result = nl_msg_parse(message, visit, context);
    nlmsg_free(message);
    return result;
}

// The length of a received datagram, which may be larger than the memory for it, and the netlink port of its sender.
// The kernel's port is 0.
struct netwatch_datagram {
    unsigned int length;
    unsigned int sender;
};

// recvmmsg(2) and its structure. <sys/socket.h> declares them only with _GNU_SOURCE. The other names avoid a conflict
// if it is defined.
struct netwatch_mmsghdr {
    struct msghdr header;
    unsigned int length;
};
extern int netwatch_recvmmsg(int, struct netwatch_mmsghdr *, unsigned int, int, void *) __asm__("recvmmsg");

// The maximum number of datagrams of one call of netwatch_receive.
enum { NETWATCH_MAX_DATAGRAMS = 8 };

// Receives the pending datagrams, up to `capacity`, without blocking. Each uses `size` bytes of `memory`. Returns their
// number; -1 with `errno` if there is none. An error after the first datagram is returned by the next call.
static inline int netwatch_receive(
    int socket,
    void *memory,
    unsigned long size,
    struct netwatch_datagram *datagrams,
    int capacity
) {
    struct sockaddr_nl senders[NETWATCH_MAX_DATAGRAMS];
    struct iovec parts[NETWATCH_MAX_DATAGRAMS];
    struct netwatch_mmsghdr messages[NETWATCH_MAX_DATAGRAMS];
    memset(senders, 0, sizeof senders);
    memset(messages, 0, sizeof messages);
    for (int index = 0; index < capacity; index++) {
        parts[index].iov_base = (char *)memory + size * index;
        parts[index].iov_len = size;
        messages[index].header.msg_name = &senders[index];
        messages[index].header.msg_namelen = sizeof senders[index];
        messages[index].header.msg_iov = &parts[index];
        messages[index].header.msg_iovlen = 1;
    }
    // With MSG_TRUNC, each length is the real length of the datagram, even if the memory was too small.
    int count = netwatch_recvmmsg(socket, messages, capacity, MSG_DONTWAIT | MSG_TRUNC, NULL);
    for (int index = 0; index < count; index++) {
        datagrams[index].length = messages[index].length;
        datagrams[index].sender = senders[index].nl_pid;
    }
    return count;
}

// Casts from objects to `struct rtnl_link` and `struct rtnl_addr`. libnl defines such casts as macros, or not at all.
static inline struct rtnl_link *netwatch_link(struct nl_object *object) {
    return (struct rtnl_link *)object;
}
static inline struct rtnl_addr *netwatch_address(struct nl_object *object) {
    return (struct rtnl_addr *)object;
}

#endif
