// Records netlink datagrams of the kernel as inputs for the fuzzer: first the notifications that a shell script causes,
// then the replies to requests. Writes one file per datagram.
//
// Usage, in a separate network namespace: record DIRECTORY SCRIPT
//     DIRECTORY    the directory for the files
//     SCRIPT       a shell script that changes the network
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SOL_NETLINK
#define SOL_NETLINK 270
#endif

static const char *directory;

static void fail(const char *call) {
    perror(call);
    exit(1);
}

// Sets an option of a netlink socket (`NETLINK_…`).
static void enable(int socket_, int option, int value) {
    if (setsockopt(socket_, SOL_NETLINK, option, &value, sizeof value) < 0) fail("setsockopt");
}

static int open_netlink(void) {
    int socket_ = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), size = 1 << 20;
    struct sockaddr_nl address = {.nl_family = AF_NETLINK};
    if (socket_ < 0 || bind(socket_, (struct sockaddr *)&address, sizeof address) < 0) fail("netlink");
    setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    return socket_;
}

// Writes received datagrams to files until none arrives for 200 ms. Returns the number of datagrams.
//
// kind: the beginning of the files' names
static int record(int socket_, const char *kind) {
    static char buffer[65536];
    static int number;
    struct pollfd ready = {.fd = socket_, .events = POLLIN};
    int count = 0;
    for (; poll(&ready, 1, 200) > 0; count++) {
        ssize_t length = recv(socket_, buffer, sizeof buffer, 0);
        if (length < 0) fail("recv");
        char path[4096];
        snprintf(path, sizeof path, "%s/%s-%03d", directory, kind, number++);
        FILE *file = fopen(path, "w");
        if (!file || fwrite(buffer, 1, length, file) != (size_t)length || fclose(file) != 0) fail(path);
    }
    return count;
}

// Sends a request and records the replies. Terminates the process if there is none.
//
// type: RTM_…
// flags: NLM_F_… in addition to NLM_F_REQUEST
// route_flags: RTM_F_… of a route lookup
// destination: the address to look up; NULL for none
static void request(int socket_, int type, int flags, int family, uint32_t route_flags, const char *destination) {
    struct {
        struct nlmsghdr header;
        struct rtmsg route;
        char attributes[32];
    } request = {
        .header = {.nlmsg_len = NLMSG_LENGTH(16), .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags},
        .route = {.rtm_family = family},
    };
    if (destination) {
        int size = family == AF_INET ? 4 : 16;
        struct rtattr attribute = {.rta_len = RTA_LENGTH(size), .rta_type = RTA_DST};
        char address[16];
        inet_pton(family, destination, address);
        request.header.nlmsg_len = NLMSG_LENGTH(sizeof request.route) + RTA_SPACE(size);
        request.route.rtm_dst_len = 8 * size;
        request.route.rtm_flags = route_flags;
        memcpy(request.attributes, &attribute, sizeof attribute);
        memcpy(request.attributes + sizeof attribute, address, size);
    }
    if (send(socket_, &request, request.header.nlmsg_len, 0) < 0) fail("send");
    if (record(socket_, "reply") == 0) fail("no reply");
}

// Makes the two lookups that netwatch makes for each address.
static void look_up(int socket_, int family, const char *destination) {
    request(socket_, RTM_GETROUTE, 0, family, 0, destination);
    request(socket_, RTM_GETROUTE, 0, family, RTM_F_FIB_MATCH, destination);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    directory = argv[1];
    int events = open_netlink(), requests = open_netlink();
    for (int group = 1; group <= RTNLGRP_NEXTHOP; group++) enable(events, NETLINK_ADD_MEMBERSHIP, group);
    pid_t script = fork();
    if (script == 0) execl("/bin/sh", "sh", "-e", argv[2], NULL);
    int status = -1;
    while (waitpid(script, &status, WNOHANG) == 0) record(events, "event");
    record(events, "event");
    if (status != 0) return 1;
    enable(requests, NETLINK_EXT_ACK, 1);
    request(requests, RTM_GETLINK, NLM_F_DUMP, AF_UNSPEC, 0, NULL);
    request(requests, RTM_GETADDR, NLM_F_DUMP, AF_UNSPEC, 0, NULL);
    // Destinations of the routes and addresses that the script `network.sh` creates.
    const char *ipv4[] = {"192.0.2.2", "192.0.2.1", "127.0.0.1", "198.51.100.1", "203.0.113.1", "203.0.113.2",
                          "203.0.113.3", "203.0.113.4", "10.1.0.1", "10.2.0.1", "224.0.0.1"};
    const char *ipv6[] = {"2001:db8::2", "2001:db8::1", "::1", "2001:db8:1::1", "2001:db8:2::1",
                          "2001:db8:3::1", "2001:db8:4::1", "fe80::1"};
    for (size_t i = 0; i < sizeof ipv4 / sizeof *ipv4; i++) look_up(requests, AF_INET, ipv4[i]);
    for (size_t i = 0; i < sizeof ipv6 / sizeof *ipv6; i++) look_up(requests, AF_INET6, ipv6[i]);
    // The kernel rejects lookups without a destination, with an error text. Its first replies contain the whole
    // request, the replies after NETLINK_CAP_ACK only the request's header.
    enable(requests, NETLINK_GET_STRICT_CHK, 1);
    look_up(requests, AF_INET, NULL);
    enable(requests, NETLINK_CAP_ACK, 1);
    look_up(requests, AF_INET, NULL);
}
