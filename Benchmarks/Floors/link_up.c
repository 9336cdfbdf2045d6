// The floor of delivering a request when the network returns: a program that waits for the kernel's notification and
// then connects at once.
//
// Usage: link_up ADDRESS PORT TARGET
//     Prints `ready` when it waits. Sends a GET request for TARGET to an IPv4 address, and exits with the response.
#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void fail(const char *call) {
    perror(call);
    exit(2);
}

static int listener(void) {
    struct sockaddr_nl address = {
        .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE,
    };
    int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (netlink < 0) fail("socket");
    if (bind(netlink, (struct sockaddr *)&address, sizeof address) < 0) fail("bind");
    return netlink;
}

// Whether a notification can mean that there is a path now.
static int is_gain(const struct nlmsghdr *message) {
    switch (message->nlmsg_type) {
    case RTM_NEWLINK: return (((struct ifinfomsg *)NLMSG_DATA(message))->ifi_flags & IFF_RUNNING) != 0;
    case RTM_NEWADDR:
    case RTM_NEWROUTE: return 1;
    default: return 0;
    }
}

// Sends the request. Returns whether the kernel had a path.
static int try_once(const struct sockaddr_in *server, const char *target) {
    char buffer[4096];
    int length = snprintf(buffer, sizeof buffer, "GET %s HTTP/1.1\r\nHost: floor\r\n\r\n", target);
    int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection < 0) fail("socket");
    if (connect(connection, (const struct sockaddr *)server, sizeof *server) < 0) {
        if (errno != ENETUNREACH && errno != EHOSTUNREACH) fail("connect");
        close(connection);
        return 0;
    }
    if (write(connection, buffer, length) != length) fail("write");
    if (read(connection, buffer, sizeof buffer) <= 0) fail("read");
    close(connection);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 4) return 64;
    struct sockaddr_in server = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[2])) };
    if (inet_pton(AF_INET, argv[1], &server.sin_addr) != 1) return 64;
    int netlink = listener();
    puts("ready");
    fflush(stdout);
    for (;;) {
        _Alignas(struct nlmsghdr) char buffer[65536];
        int length = recv(netlink, buffer, sizeof buffer, 0);
        if (length < 0) fail("recv");
        int gains = 0;
        for (struct nlmsghdr *message = (struct nlmsghdr *)buffer; NLMSG_OK(message, (unsigned)length);
             message = NLMSG_NEXT(message, length)) gains |= is_gain(message);
        if (gains && try_once(&server, argv[3])) return 0;
    }
}
