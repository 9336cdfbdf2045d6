#define _GNU_SOURCE
// Posts requests to the service's control socket over keep-alive connections, with one thread per connection. A
// connection sends its next request after the response to the previous one, which must be 200 or 202. Prints the
// requests per second.
//
// Usage: control_socket SOCKET CONNECTIONS COUNT MESSAGE
//     SOCKET         the path of the control socket
//     CONNECTIONS    the number of connections
//     COUNT          the number of requests, over all connections
//     MESSAGE        the JSON body of each request
#include "figures.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { HEAD = 8192 };

static const char *path;
static char request[65536];
static size_t request_size;
static long left;

static int open_socket(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) errno = ENAMETOOLONG, floors_fail(path);
    strcpy(address.sun_path, path);
    int socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ < 0 || connect(socket_, (struct sockaddr *)&address, sizeof address) < 0) floors_fail("connect");
    return socket_;
}

// Reads one response, whose head must contain Content-Length. Terminates the process if its status is not 20x.
static void read_response(int socket_) {
    static _Thread_local char text[HEAD + 1];
    size_t size = 0;
    for (;;) {
        ssize_t count = read(socket_, text + size, HEAD - size);
        if (count <= 0) errno = count ? errno : ECONNRESET, floors_fail("read");
        size += count;
        text[size] = 0;
        char *end = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "\r\ncontent-length:");
        if (!end) continue;
        if (strncmp(text, "HTTP/1.1 20", 11) || !length) fprintf(stderr, "%s\n", text), exit(1);
        if (size >= (size_t)(end + 4 - text) + strtoul(length + 17, NULL, 10)) return;
    }
}

static void *post(void *context) {
    int socket_ = open_socket();
    while (__atomic_fetch_sub(&left, 1, __ATOMIC_RELAXED) > 0) {
        if (write(socket_, request, request_size) != (ssize_t)request_size) floors_fail("write");
        read_response(socket_);
    }
    close(socket_);
    return context;
}

int main(int count, char **arguments) {
    if (count != 5) return fprintf(stderr, "usage: control_socket SOCKET CONNECTIONS COUNT MESSAGE\n"), 64;
    path = arguments[1];
    int connections = atoi(arguments[2]);
    long total = left = atol(arguments[3]);
    request_size = snprintf(
        request, sizeof request,
        "POST /v1/requests HTTP/1.1\r\nHost: netwatch\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
        strlen(arguments[4]), arguments[4]);
    if (request_size >= sizeof request) errno = EMSGSIZE, floors_fail("message");
    pthread_t threads[connections];
    int64_t start = floors_now(CLOCK_MONOTONIC);
    for (int i = 0; i < connections; i++)
        if (pthread_create(threads + i, NULL, post, NULL)) floors_fail("pthread_create");
    for (int i = 0; i < connections; i++) pthread_join(threads[i], NULL);
    printf("rate %.1f\n", total * 1e9 / (floors_now(CLOCK_MONOTONIC) - start));
}
