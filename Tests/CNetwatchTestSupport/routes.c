#include "CNetwatchTestSupport.h"

#include <errno.h>
#include <net/route.h>
#include <netinet/in.h>
#include <sys/ioctl.h>

int netwatch_set_upper_half_unreachable(int socket, int is_unreachable) {
    struct rtentry entry = { .rt_flags = RTF_UP | RTF_REJECT };
    struct sockaddr_in *destination = (struct sockaddr_in *)&entry.rt_dst;
    struct sockaddr_in *mask = (struct sockaddr_in *)&entry.rt_genmask;
    destination->sin_family = mask->sin_family = AF_INET;
    destination->sin_addr.s_addr = mask->sin_addr.s_addr = htonl(0x80000000);
    return ioctl(socket, is_unreachable ? SIOCADDRT : SIOCDELRT, &entry) == 0 ? 0 : errno;
}
