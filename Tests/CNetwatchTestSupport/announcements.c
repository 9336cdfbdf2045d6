#include "CNetwatchTestSupport.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

int netwatch_open_announcements(void) {
    struct sockaddr_nl address = {
        .nl_family = AF_NETLINK,
        .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
    };
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (descriptor < 0) return -1;
    if (bind(descriptor, (struct sockaddr *)&address, sizeof(address)) == 0) return descriptor;
    int error = errno;
    close(descriptor);
    errno = error;
    return -1;
}
