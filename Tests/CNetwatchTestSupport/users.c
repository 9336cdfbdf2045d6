// For syscall(2) and setgroups(2).
#define _GNU_SOURCE

#include <errno.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "CNetwatchTestSupport.h"

/// Sets the effective user, the effective group and the other groups of the calling thread. The functions of the C
/// library would set those of all threads.
static int become(uid_t user, gid_t group, int count, const gid_t *groups) {
    if (syscall(SYS_setgroups, count, groups) != 0) return errno;
    if (syscall(SYS_setresgid, -1, group, -1) != 0) return errno;
    if (syscall(SYS_setresuid, -1, user, -1) != 0) return errno;
    return 0;
}

int netwatch_connect_as(int socket, const void *address, unsigned int length, unsigned int user, unsigned int group) {
    gid_t own[64], other[] = {group};
    int count = getgroups(64, own);
    if (count < 0) return errno;
    gid_t own_group = getegid();
    int error = become(user, group, 1, other);
    if (error == 0 && connect(socket, address, length) != 0) error = errno;
    // Only root may set its groups, so the thread becomes root first.
    syscall(SYS_setresuid, -1, 0, -1);
    int restored = become(0, own_group, count, own);
    // The kernel has cleared this attribute of the process, without which a sanitizer cannot attach to it.
    prctl(PR_SET_DUMPABLE, 1);
    return error != 0 ? error : restored;
}
