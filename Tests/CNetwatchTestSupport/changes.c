#include "CNetwatchTestSupport.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

struct change {
    struct nlmsghdr header;
    union {
        struct rtmsg route;
        struct ifaddrmsg address;
    };
    char attributes[64];
};

static void add_address(struct change *change, unsigned short type, const char *text) {
    struct rtattr *attribute = (struct rtattr *)((char *)change + NLMSG_ALIGN(change->header.nlmsg_len));
    attribute->rta_type = type;
    attribute->rta_len = RTA_LENGTH(4);
    inet_pton(AF_INET, text, RTA_DATA(attribute));
    change->header.nlmsg_len = NLMSG_ALIGN(change->header.nlmsg_len) + RTA_LENGTH(4);
}

/* Makes a change in the calling thread's network namespace. Returns 0 or an error number. */
static int make(struct change *change) {
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (descriptor < 0) return errno;
    struct { struct nlmsghdr header; struct nlmsgerr error; char rest[256]; } answer;
    int error = 0;
    change->header.nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
    if (send(descriptor, change, change->header.nlmsg_len, 0) < 0 || recv(descriptor, &answer, sizeof(answer), 0) < 0) {
        error = errno;
    } else {
        error = -answer.error.error;
    }
    close(descriptor);
    return error;
}

int netwatch_change_route(int is_added, int type, const char *destination, const char *gateway) {
    struct change change = {
        .header = {
            .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
            .nlmsg_type = is_added ? RTM_NEWROUTE : RTM_DELROUTE,
            .nlmsg_flags = is_added ? NLM_F_CREATE | NLM_F_REPLACE : 0,
        },
        .route = {
            .rtm_family = AF_INET, .rtm_dst_len = 32, .rtm_table = RT_TABLE_MAIN,
            // With these values a deletion matches routes of any protocol, scope and type.
            .rtm_protocol = is_added ? RTPROT_STATIC : RTPROT_UNSPEC,
            .rtm_scope = is_added ? RT_SCOPE_UNIVERSE : RT_SCOPE_NOWHERE,
            .rtm_type = is_added ? (unsigned char)type : RTN_UNSPEC,
        },
    };
    add_address(&change, RTA_DST, destination);
    if (gateway) add_address(&change, RTA_GATEWAY, gateway);
    return make(&change);
}

int netwatch_change_address(int is_added, const char *interface, const char *address) {
    struct change change = {
        .header = {
            .nlmsg_len = NLMSG_LENGTH(sizeof(struct ifaddrmsg)),
            .nlmsg_type = is_added ? RTM_NEWADDR : RTM_DELADDR,
            .nlmsg_flags = is_added ? NLM_F_CREATE | NLM_F_EXCL : 0,
        },
        .address = { .ifa_family = AF_INET, .ifa_prefixlen = 24, .ifa_index = if_nametoindex(interface) },
    };
    add_address(&change, IFA_LOCAL, address);
    add_address(&change, IFA_ADDRESS, address);
    return make(&change);
}

int netwatch_set_link(const char *interface, int is_up) {
    int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return errno;
    struct ifreq request = { 0 };
    strncpy(request.ifr_name, interface, sizeof(request.ifr_name) - 1);
    int error = ioctl(descriptor, SIOCGIFFLAGS, &request) == 0 ? 0 : errno;
    if (is_up) request.ifr_flags |= IFF_UP; else request.ifr_flags &= ~IFF_UP;
    if (error == 0 && ioctl(descriptor, SIOCSIFFLAGS, &request) != 0) error = errno;
    close(descriptor);
    return error;
}
