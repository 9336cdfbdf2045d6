// Shared by all floors: clocks, failures and the output of figures.
#ifndef NETWATCH_FLOORS_FIGURES_H
#define NETWATCH_FLOORS_FIGURES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

// Prints the error of a failed system call (`errno`) and terminates the process.
static inline void floors_fail(const char *call) {
    perror(call);
    exit(1);
}

// Returns the time of a clock in nanoseconds.
static inline int64_t floors_now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static inline void floors_sleep(int64_t nanoseconds) {
    struct timespec time = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    nanosleep(&time, NULL);
}

// Returns the CPU time of all threads of this process, in seconds.
static inline double floors_processor_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
        + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

// Returns the number of context switches of all threads of this process so far.
static inline int64_t floors_context_switches(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (int64_t)usage.ru_nvcsw + usage.ru_nivcsw;
}

// Compares two `int64_t` for qsort(3).
static inline int floors_ascending(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

// Prints the figures `PREFIXp50` and `PREFIXp99` in microseconds. The latencies are given in nanoseconds, and are
// sorted by this function.
static inline void floors_report(const char *prefix, int64_t *latencies, int count) {
    qsort(latencies, count, sizeof *latencies, floors_ascending);
    printf("%sp50 %.2f\n", prefix, latencies[count / 2] / 1e3);
    printf("%sp99 %.2f\n", prefix, latencies[(int64_t)count * 99 / 100] / 1e3);
}

#endif
