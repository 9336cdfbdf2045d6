// The floor of connecting to a host with several addresses. Connects according to RFC 8305: starts a connection to the
// next address 250 ms after the previous one, or immediately after a failure. Sends a request over the first connection
// that is established, and prints the time from the start to the first byte.
//
// Usage: race PORT ADDRESS...    at most 64 addresses
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

// Returns a socket that is connecting, or -1 if connecting failed immediately.
static int begin(const char *address, int port) {
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    int is_v4 = inet_pton(AF_INET, address, &v4.sin_addr) == 1;
    if (!is_v4 && inet_pton(AF_INET6, address, &v6.sin6_addr) != 1) exit(2);
    int descriptor = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr *to = is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
    if (connect(descriptor, to, is_v4 ? sizeof v4 : sizeof v6) == 0 || errno == EINPROGRESS) return descriptor;
    close(descriptor);
    return -1;
}

// Connects to the addresses. Returns the first connected socket.
static int race(int port, int count, char **addresses) {
    struct pollfd open[64];
    int opened = 0, next = 0;
    double due = now();
    for (;;) {
        while (next < count && now() >= due) {
            int descriptor = begin(addresses[next++], port);
            if (descriptor < 0) continue;
            open[opened++] = (struct pollfd){.fd = descriptor, .events = POLLOUT};
            due = now() + 0.25;
        }
        if (poll(open, opened, next < count ? (int)((due - now()) * 1000) + 1 : -1) <= 0) continue;
        for (int i = 0; i < opened; i++) {
            int error = 0;
            socklen_t size = sizeof error;
            if (open[i].fd < 0 || !open[i].revents) continue;
            getsockopt(open[i].fd, SOL_SOCKET, SO_ERROR, &error, &size);
            if (!error) return open[i].fd;
            close(open[i].fd);
            open[i].fd = -1;
            due = now();
        }
    }
}

int main(int argc, char **argv) {
    if (argc < 3 || argc > 66) return 2;
    double start = now();
    int descriptor = race(atoi(argv[1]), argc - 2, argv + 2);
    struct pollfd answer = {.fd = descriptor, .events = POLLIN};
    const char *request = "GET / HTTP/1.1\r\nHost: netwatch.invalid\r\n\r\n";
    if (write(descriptor, request, strlen(request)) < 0) return 1;
    char byte;
    if (poll(&answer, 1, -1) != 1 || read(descriptor, &byte, 1) != 1) return 1;
    printf("seconds %f\n", now() - start);
}
