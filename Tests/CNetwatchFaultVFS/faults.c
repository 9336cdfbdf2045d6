#include "faults.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define SLOTS 64

static struct slot {
    int is_used;
    long calls;
    struct netwatch_fault fault;
    char marker[256];
} slots[SLOTS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void use(struct slot *slot, const char *marker, struct netwatch_fault fault) {
    memset(slot, 0, sizeof(*slot));
    slot->is_used = 1;
    slot->fault = fault;
    strncpy(slot->marker, marker, sizeof(slot->marker) - 1);
}

int netwatch_fault_arm(const char *marker, struct netwatch_fault fault) {
    int number = -1;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < SLOTS && number < 0; i++) {
        if (!slots[i].is_used) number = i;
    }
    if (number >= 0) use(&slots[number], marker, fault);
    pthread_mutex_unlock(&lock);
    return number;
}

long netwatch_fault_calls(int number) {
    pthread_mutex_lock(&lock);
    long calls = slots[number].calls;
    pthread_mutex_unlock(&lock);
    return calls;
}

void netwatch_fault_disarm(int number) {
    pthread_mutex_lock(&lock);
    slots[number].is_used = 0;
    pthread_mutex_unlock(&lock);
}

static int counts(const struct slot *slot, const char *path, unsigned calls) {
    return slot->is_used && (slot->fault.calls & calls) && strstr(path, slot->marker);
}

static int is_struck(const struct slot *slot) {
    long first = slot->fault.first;
    return slot->calls == first || (slot->fault.persists && slot->calls > first);
}

int netwatch_fault_strikes(const char *path, unsigned calls, struct netwatch_fault *fault) {
    int strikes = 0;
    // A temporary file has no path, and never fails.
    if (!path) return 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < SLOTS; i++) {
        if (!counts(&slots[i], path, calls)) continue;
        slots[i].calls++;
        if (!is_struck(&slots[i])) continue;
        strikes = 1;
        *fault = slots[i].fault;
    }
    pthread_mutex_unlock(&lock);
    return strikes;
}

void netwatch_fault_kill(void) {
    kill(getpid(), SIGKILL);
    // The signal may be delivered to another thread first.
    for (;;) pause();
}
