// The floor of reporting once whether a host is reachable: a netlink socket, one lookup, one line of output.
//
// Usage: once ADDRESS
#include "routes.h"

int main(int argc, char **argv) {
    struct {
        struct nlmsghdr header;
        struct rtmsg route;
        char attributes[16];
    } request = {
        .header = {
            .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
            .nlmsg_type = RTM_GETROUTE,
            .nlmsg_flags = NLM_F_REQUEST,
        },
        .route = {.rtm_family = AF_INET, .rtm_dst_len = 32},
    };
    uint32_t address;
    if (argc != 2 || inet_pton(AF_INET, argv[1], &address) != 1) return 2;
    floors_put(&request.header, RTA_DST, &address, sizeof address);
    int socket_ = floors_netlink(0);
    if (send(socket_, &request, request.header.nlmsg_len, 0) < 0) floors_fail("send");
    char reply[4096];
    if (recv(socket_, reply, sizeof reply, 0) < 0) floors_fail("recv");
    puts(((struct nlmsghdr *)reply)->nlmsg_type == RTM_NEWROUTE ? "reachable" : "not reachable");
}
