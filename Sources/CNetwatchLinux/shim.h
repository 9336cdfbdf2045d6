// System calls and structures that Swift's Glibc module leaves out.
#ifndef CNETWATCH_LINUX_SHIM_H
#define CNETWATCH_LINUX_SHIM_H

// `setns`, `unshare` and `struct ucred` are only declared with it.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

// Variadic, which Swift does not import.
static inline void netwatch_set_thread_name(const char *name) {
    prctl(PR_SET_NAME, name);
}

#endif
