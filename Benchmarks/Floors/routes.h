// Shared by `ReachabilityBenchmark` and its floors, so that both make and time route changes in the same way.
#ifndef NETWATCH_FLOORS_ROUTES_H
#define NETWATCH_FLOORS_ROUTES_H

#include "figures.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// Returns a routing netlink socket that receives the notifications of the given groups (`RTMGRP_…`).
static inline int floors_netlink(uint32_t groups) {
    int socket_ = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (socket_ < 0) floors_fail("socket");
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = groups};
    if (bind(socket_, (struct sockaddr *)&address, sizeof address) < 0) floors_fail("bind");
    return socket_;
}

// Appends an attribute to a message. The message's buffer must be large enough.
static inline void floors_put(struct nlmsghdr *message, uint16_t type, const void *value, uint16_t length) {
    char *end = (char *)message + message->nlmsg_len;
    struct rtattr attribute = {.rta_type = type, .rta_len = RTA_LENGTH(length)};
    memcpy(end, &attribute, sizeof attribute);
    memcpy(end + sizeof attribute, value, length);
    message->nlmsg_len += RTA_SPACE(length);
}

// Adds, replaces or deletes an IPv4 route with a gateway. Returns after the kernel has made the change and notified all
// listeners. The result is the time immediately before the system call, in nanoseconds of CLOCK_MONOTONIC.
static inline int64_t floors_change_route(
    int writer, _Bool adds, const char *destination, uint8_t length, const char *gateway
) {
    struct {
        struct nlmsghdr header;
        struct rtmsg route;
        char attributes[64];
    } request = {
        .header = {
            .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
            .nlmsg_type = adds ? RTM_NEWROUTE : RTM_DELROUTE,
            .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | (adds ? NLM_F_CREATE | NLM_F_REPLACE : 0),
        },
        .route = {
            .rtm_family = AF_INET, .rtm_dst_len = length, .rtm_table = RT_TABLE_MAIN,
            .rtm_protocol = RTPROT_STATIC, .rtm_scope = RT_SCOPE_UNIVERSE, .rtm_type = RTN_UNICAST,
        },
    };
    uint32_t address;
    inet_pton(AF_INET, destination, &address);
    floors_put(&request.header, RTA_DST, &address, sizeof address);
    inet_pton(AF_INET, gateway, &address);
    floors_put(&request.header, RTA_GATEWAY, &address, sizeof address);
    int64_t before = floors_now(CLOCK_MONOTONIC);
    if (send(writer, &request, request.header.nlmsg_len, 0) < 0) floors_fail("send");
    struct {
        struct nlmsghdr header;
        struct nlmsgerr acknowledgement;
        char rest[512];
    } reply;
    if (recv(writer, &reply, sizeof reply, 0) < 0) floors_fail("recv");
    if (reply.acknowledgement.error != 0) {
        fprintf(stderr, "the kernel refused to change a route: %s\n", strerror(-reply.acknowledgement.error));
        exit(1);
    }
    return before;
}

#endif
