// System calls, structures and constants for 64-bit Linux that are missing in Swift's Glibc module.
//
// Declared by hand and without any #include. If both this module and Swift's Glibc module included a glibc header,
// the compiler would assign it to whichever module it loaded first. The declarations visible in a file
// (`SOCK_STREAM`, `pid_t`, `fd_set`) would then depend on the build order.
#ifndef CNETWATCH_LINUX_SHIM_H
#define CNETWATCH_LINUX_SHIM_H

#if !defined(__linux__) || !defined(__LP64__)
#error "netwatch is for 64-bit Linux"
#endif

// epoll(7), from the kernel's <linux/eventpoll.h>. The flags of epoll_create1(2) are those of open(2).
static const int EPOLL_CTL_ADD = 1;
static const int EPOLL_CTL_DEL = 2;
static const int EPOLL_CTL_MOD = 3;
static const unsigned int EPOLLIN = 0x001;
static const unsigned int EPOLLOUT = 0x004;
static const unsigned int EPOLLERR = 0x008;
static const unsigned int EPOLLHUP = 0x010;

struct netwatch_epoll_event {
    unsigned int events;
    unsigned long data;
}
// The kernel's layout on x86-64, which is that of 32-bit programs.
#ifdef __x86_64__
__attribute__((packed))
#endif
;

extern int epoll_create1(int flags);
extern int epoll_ctl(int epoll, int operation, int descriptor, struct netwatch_epoll_event *event);
extern int epoll_wait(int epoll, struct netwatch_epoll_event *events, int capacity, int timeout);

// eventfd(2). Its flags are also those of open(2).
extern int eventfd(unsigned int initial, int flags);
extern int eventfd_read(int descriptor, unsigned long *value);
extern int eventfd_write(int descriptor, unsigned long value);

// timerfd_create(2). Its flags are also those of open(2). The structure is `struct itimerspec`.
struct netwatch_itimerspec {
    long interval_seconds;
    long interval_nanoseconds;
    long seconds;
    long nanoseconds;
};

extern int timerfd_create(int clock, int flags);
extern int timerfd_settime(
    int descriptor,
    int flags,
    const struct netwatch_itimerspec *setting,
    struct netwatch_itimerspec *old
);

// The flags with which a timer on CLOCK_REALTIME detects that the clock was set.
static const int TFD_TIMER_ABSTIME = 1;
static const int TFD_TIMER_CANCEL_ON_SET = 2;

// setns(2) and unshare(2), from <linux/sched.h>.
static const int CLONE_NEWNET = 0x40000000;
extern int setns(int descriptor, int type);
extern int unshare(int flags);

// `struct ucred`, the value of SO_PEERCRED in unix(7).
struct netwatch_ucred {
    int pid;
    unsigned int uid;
    unsigned int gid;
};

// accept4(2), used without the peer's address.
extern int accept4(int descriptor, void *address, void *length, int flags);

// mallopt(3) and malloc_trim(3), from <malloc.h>.
static const int M_MMAP_THRESHOLD = -3;
extern int mallopt(int parameter, int value);
extern int malloc_trim(unsigned long pad);

// pipe2(2). `ends` is an array of two descriptors.
extern int pipe2(int *ends, int flags);

// adjtimex(2) without a mode reads the clock state. It returns TIME_ERROR (5) while the clock is not synchronized.
// The structure is smaller than the array, and its contents are ignored.
extern int adjtimex(void *timex);
static inline int netwatch_clock_is_synchronized(void) {
    unsigned long timex[64] = {0};
    return adjtimex(timex) != 5;
}

// ioctl_ficlone(2): creates a copy that shares its blocks with the original until one of them changes. The number is
// that of x86, ARM, RISC-V and s390; on other architectures the kernel rejects it. ioctl(2) is variadic, which Swift
// does not import.
extern int ioctl(int descriptor, unsigned long request, ...);
static inline int netwatch_clone_file(int destination, int source) {
    return ioctl(destination, 0x40049409, source);
}

// FIONREAD of tcp(7): the number of received bytes that have not been read.
static inline int netwatch_unread_bytes(int descriptor, int *count) {
    return ioctl(descriptor, 0x541b, count);
}

// SIOCOUTQ of tcp(7): how many bytes the peer has not acknowledged.
static inline int netwatch_unacknowledged_bytes(int descriptor, int *count) {
    return ioctl(descriptor, 0x5411, count);
}

// prctl(2) is variadic, which Swift does not import. 15 is PR_SET_NAME.
extern int prctl(int option, ...);
static inline void netwatch_set_thread_name(const char *name) {
    prctl(15, name);
}

#endif
