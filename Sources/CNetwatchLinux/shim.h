// System calls and structures that Swift's Glibc module leaves out.
//
// glibc declares several of them only under _GNU_SOURCE. Defining that here would give this module other
// definitions of shared structures (fd_set) than the modules beside it have, so they are declared by hand.
#ifndef CNETWATCH_LINUX_SHIM_H
#define CNETWATCH_LINUX_SHIM_H

#include <linux/sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

// setns(2), unshare(2), accept4(2)
extern int setns(int descriptor, int type);
extern int unshare(int flags);
extern int accept4(int descriptor, struct sockaddr *address, socklen_t *length, int flags);

// What SO_PEERCRED of unix(7) gives: the C library's `struct ucred`.
struct netwatch_ucred {
    pid_t pid;
    uid_t uid;
    gid_t gid;
};

// Variadic, which Swift does not import.
static inline void netwatch_set_thread_name(const char *name) {
    prctl(PR_SET_NAME, name);
}

#endif
