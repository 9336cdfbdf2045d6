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

// Casts from objects to `struct rtnl_link` and `struct rtnl_addr`. libnl defines such casts as macros, or not at all.
static inline struct rtnl_link *netwatch_link(struct nl_object *object) {
    return (struct rtnl_link *)object;
}
static inline struct rtnl_addr *netwatch_address(struct nl_object *object) {
    return (struct rtnl_addr *)object;
}

#endif
