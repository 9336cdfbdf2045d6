// The floor of detecting a route change: a thread that only blocks in recv(2). It wakes a second thread, which is the
// floor of a callback on a queue.
//
// Usage: edges CHANGES SPACING-MS
//     CHANGES       how many times the route is added and deleted
//     SPACING-MS    the milliseconds between two changes
#include "routes.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_event = PTHREAD_COND_INITIALIZER;
static int64_t heard, handed_over, waiting;

static void *listen_(void *socket) {
    char buffer[65536];
    for (;;) {
        if (recv(*(int *)socket, buffer, sizeof buffer, 0) < 0) floors_fail("recv");
        int64_t now = floors_now(CLOCK_MONOTONIC);
        pthread_mutex_lock(&lock);
        heard = now;
        waiting = 1;
        pthread_cond_broadcast(&has_event);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *take_over(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!waiting) pthread_cond_wait(&has_event, &lock);
        handed_over = floors_now(CLOCK_MONOTONIC);
        waiting = 0;
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int changes = atoi(argv[1]), listener = floors_netlink(RTMGRP_IPV4_ROUTE), writer = floors_netlink(0);
    int64_t spacing = atoi(argv[2]) * INT64_C(1000000);
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, listen_, &listener);
    pthread_create(&threads[1], NULL, take_over, NULL);
    int64_t *latencies[2][2];
    for (int i = 0; i < 4; i++) latencies[i / 2][i % 2] = calloc(changes, sizeof(int64_t));
    for (int i = 0; i < 2 * changes; i++) {
        int adds = i % 2 == 0;
        floors_sleep(spacing);
        int64_t start = floors_change_route(writer, adds, "198.51.100.7", 32, "192.0.2.2");
        int64_t seen = 0, taken = 0;
        while (taken < start) {
            floors_sleep(1000000);
            pthread_mutex_lock(&lock);
            seen = heard, taken = handed_over;
            pthread_mutex_unlock(&lock);
        }
        latencies[adds][0][i / 2] = seen - start;
        latencies[adds][1][i / 2] = taken - start;
    }
    floors_report("reachable.thread.", latencies[1][0], changes);
    floors_report("reachable.queue.", latencies[1][1], changes);
    floors_report("notReachable.thread.", latencies[0][0], changes);
    floors_report("notReachable.queue.", latencies[0][1], changes);
}
