// A library to preload into a program (LD_PRELOAD). Counts the program's disk syncs. Can also replace each sync by a
// pause of a given length, because on a virtual disk fsync(2) may vary from 0.08 ms to 4 ms within minutes.
//
// FLOORS_SYNCS               the file with the counter
// FLOORS_SYNC_NANOSECONDS    the length of the pause that replaces each sync; if unset, the disk is synced
#define _GNU_SOURCE
#include "syncs.h"

#include "figures.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/prctl.h>

static int64_t *count;
static int64_t pinned = -1;
static int (*real_fsync)(int), (*real_fdatasync)(int);

__attribute__((constructor)) static void floors_begin_counting(void) {
    real_fsync = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    const char *path = getenv(FLOORS_SYNCS), *time = getenv("FLOORS_SYNC_NANOSECONDS");
    if (time) pinned = strtoll(time, NULL, 10);
    int file = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (file < 0 || ftruncate(file, sizeof *count) != 0) return;
    void *page = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) count = page;
    close(file);
}

static int floors_sync(int file, int (*real)(int)) {
    if (count) __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
    if (pinned < 0) return real(file);
    if (pinned == 0) return 0;
    int64_t end = floors_now(CLOCK_MONOTONIC) + pinned;
    struct timespec time = {end / 1000000000, end % 1000000000};
    // With the default timer slack, the kernel may wake the thread 50 µs late.
    prctl(PR_SET_TIMERSLACK, 1);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
    return 0;
}

int fsync(int file) { return floors_sync(file, real_fsync); }

int fdatasync(int file) { return floors_sync(file, real_fdatasync); }
