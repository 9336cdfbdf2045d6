// The floor of looking up many addresses again. Reads the kernel's tables of links and of addresses. Then makes two
// lookups for each address, as netwatch does, with the lookups of 64 addresses per system call. Of the replies only the
// type is checked.
//
// Usage: lookups ADDRESSES ROUNDS SPACING-MS
//     ADDRESSES     the number of addresses
//     ROUNDS        the number of repetitions; the medians are printed
//     SPACING-MS    the pause before each round in milliseconds
#include "routes.h"

#include <linux/if_link.h>

enum { BATCH = 64 };

static char replies[65536];

// Requests a table of the kernel and receives all of its entries.
//
// type: RTM_GETLINK or RTM_GETADDR
static void dump(int socket_, uint16_t type, int skips_statistics) {
    union {
        struct nlmsghdr header;
        char bytes[64];
    } request = {0};
    request.header.nlmsg_len = NLMSG_LENGTH(type == RTM_GETLINK ? sizeof(struct ifinfomsg) : 8);
    request.header.nlmsg_type = type;
    request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    uint32_t mask = RTEXT_FILTER_SKIP_STATS;
    if (skips_statistics) floors_put(&request.header, IFLA_EXT_MASK, &mask, sizeof mask);
    if (send(socket_, &request, request.header.nlmsg_len, 0) < 0) floors_fail("send");
    for (;;) {
        int count = recv(socket_, replies, sizeof replies, 0);
        if (count < 0) floors_fail("recv");
        for (struct nlmsghdr *h = (struct nlmsghdr *)replies; NLMSG_OK(h, count); h = NLMSG_NEXT(h, count)) {
            if (h->nlmsg_type == NLMSG_DONE) return;
            if (h->nlmsg_type == NLMSG_ERROR) floors_fail("dump");
        }
    }
}

// Writes a lookup of an address to the buffer. Returns the length of the lookup.
static int append_query(char *buffer, uint32_t address, uint32_t flags) {
    struct nlmsghdr *header = (struct nlmsghdr *)buffer;
    memset(header, 0, NLMSG_LENGTH(sizeof(struct rtmsg)));
    header->nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg));
    header->nlmsg_type = RTM_GETROUTE;
    header->nlmsg_flags = NLM_F_REQUEST;
    struct rtmsg *route = NLMSG_DATA(header);
    route->rtm_family = AF_INET;
    route->rtm_dst_len = 32;
    route->rtm_flags = flags;
    floors_put(header, RTA_DST, &address, sizeof address);
    return header->nlmsg_len;
}

static void look_up(int socket_, uint32_t first, uint32_t count) {
    static char requests[BATCH * 2 * 64];
    int length = 0;
    for (uint32_t i = 0; i < count; i++) {
        // The same addresses as in `ReachabilityBenchmark`: ten in each /24 from 10.0.0.0 on.
        uint32_t n = first + i, address = htonl(0x0a000000 | n / 10 << 8 | (n % 10 + 1));
        length += append_query(requests + length, address, 0);
        length += append_query(requests + length, address, RTM_F_FIB_MATCH);
    }
    if (send(socket_, requests, length, 0) < 0) floors_fail("send");
    for (uint32_t i = 0; i < 2 * count; i++) {
        if (recv(socket_, replies, sizeof replies, MSG_DONTWAIT) < 0) floors_fail("recv");
        if (((struct nlmsghdr *)replies)->nlmsg_type != RTM_NEWROUTE) floors_fail("lookup");
    }
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    int addresses = atoi(argv[1]), rounds = atoi(argv[2]), socket_ = floors_netlink(0), size = 1 << 20;
    int64_t spacing = atoi(argv[3]) * INT64_C(1000000);
    if (setsockopt(socket_, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size) < 0)
        setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    int64_t wall[rounds], cpu[rounds];
    for (int round = 0; round < rounds; round++) {
        floors_sleep(spacing);
        int64_t start = floors_now(CLOCK_MONOTONIC), used = floors_now(CLOCK_THREAD_CPUTIME_ID);
        dump(socket_, RTM_GETLINK, 1);
        dump(socket_, RTM_GETADDR, 0);
        for (int i = 0; i < addresses; i += BATCH)
            look_up(socket_, i, addresses - i < BATCH ? addresses - i : BATCH);
        wall[round] = floors_now(CLOCK_MONOTONIC) - start;
        cpu[round] = floors_now(CLOCK_THREAD_CPUTIME_ID) - used;
    }
    qsort(wall, rounds, sizeof *wall, floors_ascending);
    qsort(cpu, rounds, sizeof *cpu, floors_ascending);
    printf("recompute.wall %.3f\nrecompute.cpu %.3f\n", wall[rounds / 2] / 1e6, cpu[rounds / 2] / 1e6);
}
