// System calls, structures and constants of 64-bit Linux that Swift's Glibc module lacks.
//
// They are declared by hand and without any #include. If this module and Swift's Glibc module both included a glibc
// header, the compiler would assign the header to the module that it loaded first. The declarations that are visible in
// a Swift file (`SOCK_STREAM`, `pid_t`, `fd_set`) would then depend on the build order.
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
// On x86-64 the kernel uses the layout of 32-bit programs, without padding.
#ifdef __x86_64__
__attribute__((packed))
#endif
;

extern int epoll_create1(int flags);
extern int epoll_ctl(int epoll, int operation, int descriptor, struct netwatch_epoll_event *event);
extern int epoll_wait(int epoll, struct netwatch_epoll_event *events, int capacity, int timeout);

// eventfd(2). Its flags are the same as those of open(2).
extern int eventfd(unsigned int initial, int flags);
extern int eventfd_read(int descriptor, unsigned long *value);
extern int eventfd_write(int descriptor, unsigned long value);

// timerfd_create(2). Its flags are the same as those of open(2). The structure is `struct itimerspec`.
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

// With the first flag, the setting is a time of the clock, not a duration. With both, a timer on CLOCK_REALTIME detects
// that the clock was set.
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

// accept4(2). netwatch does not request the peer's address, so the types of those arguments do not matter.
extern int accept4(int descriptor, void *address, void *length, int flags);

// lsetxattr(2), lgetxattr(2) and lremovexattr(2): the extended attributes of a file. They do not follow a symbolic link.
// Other modules declare these functions, too, with types that Swift imports in another way.
extern int lsetxattr(const char *path, const char *name, const void *value, unsigned long size, int flags);
extern long lgetxattr(const char *path, const char *name, void *value, unsigned long size);
extern int lremovexattr(const char *path, const char *name);
static inline int netwatch_set_attribute(const char *path, const char *name, const void *value, long size) {
    return lsetxattr(path, name, value, size, 0);
}
static inline long netwatch_get_attribute(const char *path, const char *name, void *value, long size) {
    return lgetxattr(path, name, value, size);
}
static inline int netwatch_remove_attribute(const char *path, const char *name) {
    return lremovexattr(path, name);
}

// mallopt(3) and malloc_trim(3), from <malloc.h>.
static const int M_MMAP_THRESHOLD = -3;
extern int mallopt(int parameter, int value);
extern int malloc_trim(unsigned long pad);

// pipe2(2). `ends` is an array of two descriptors.
extern int pipe2(int *ends, int flags);

// posix_spawn_file_actions_addclosefrom_np(3): the new program inherits no descriptors from `first` on. The actions are
// a `posix_spawn_file_actions_t`.
extern int posix_spawn_file_actions_addclosefrom_np(void *actions, int first);

// adjtimex(2). If no mode is set, it reads the state of the clock: TIME_ERROR (5) while the clock is not synchronized, -1
// if a filter of system calls refuses the call. The array is larger than the structure, whose contents are ignored.
extern int adjtimex(void *timex);
static inline int netwatch_clock_state(void) {
    unsigned long timex[64] = {0};
    return adjtimex(timex);
}

// memfd_create(2), and the seals of fcntl(2) that keep the content of such a file from changing.
static const unsigned int MFD_CLOEXEC = 1;
static const unsigned int MFD_ALLOW_SEALING = 2;
static const int F_ADD_SEALS = 1033;
static const int F_SEAL_SEAL = 1;
static const int F_SEAL_SHRINK = 2;
static const int F_SEAL_GROW = 4;
static const int F_SEAL_WRITE = 8;
extern int memfd_create(const char *name, unsigned int flags);

// ioctl_ficlone(2). Creates a copy of a file that shares its blocks with the original until one of them changes.
// ioctl(2) is variadic, which Swift does not import.
//
// 0x40049409 is FICLONE on x86, ARM, RISC-V and s390. On other architectures, the kernel rejects it.
extern int ioctl(int descriptor, unsigned long request, ...);
static inline int netwatch_clone_file(int destination, int source) {
    return ioctl(destination, 0x40049409, source);
}

// 0x541b is FIONREAD of tcp(7): the number of received bytes that have not been read.
static inline int netwatch_unread_bytes(int descriptor, int *count) {
    return ioctl(descriptor, 0x541b, count);
}

// 0x5411 is SIOCOUTQ of tcp(7): the number of sent bytes that the peer has not acknowledged.
static inline int netwatch_unacknowledged_bytes(int descriptor, int *count) {
    return ioctl(descriptor, 0x5411, count);
}

// prctl(2) is variadic, which Swift does not import. 15 is PR_SET_NAME.
extern int prctl(int option, ...);
static inline void netwatch_set_thread_name(const char *name) {
    prctl(15, name);
}

// Sets PR_SET_DUMPABLE (4) to SUID_DUMP_DISABLE (0): the kernel writes no core dump of this process.
static inline int netwatch_forbid_core_dumps(void) {
    return prctl(4, 0, 0, 0, 0);
}

// memmem(3), a GNU extension. Its time is linear.
extern void *memmem(
    const void *haystack, unsigned long haystack_length, const void *needle, unsigned long needle_length);

#endif
