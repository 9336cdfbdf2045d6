#ifndef CNETWATCH_NETLINK_SHIM_H
#define CNETWATCH_NETLINK_SHIM_H

#include <linux/rtnetlink.h>
#include <netlink/netlink.h>

#endif
