#define _GNU_SOURCE
// Posts requests to the service's control socket over keep-alive connections, with one thread per connection. A
// connection sends its next request after the response to the previous one, which must be 200 or 202. Prints the
// requests per second, and percentiles of the time from a request to its response.
//
// Usage: control_socket SOCKET CONNECTIONS COUNT MESSAGE [IDS]
//     SOCKET         the path of the control socket
//     CONNECTIONS    the number of connections
//     COUNT          the number of requests, over all connections
//     MESSAGE        the JSON body of each request
//     IDS            a file for the ids in the responses. The service may then end before COUNT requests are sent
#include "figures.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { HEAD = 8192 };

static const char *path;
static char request[65536];
static size_t request_size;
static long left;
static FILE *ids;

// A connection, with the durations of its requests in nanoseconds.
struct connection {
    pthread_t thread;
    int64_t *latencies;
    long count;
};

static int open_socket(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) errno = ENAMETOOLONG, floors_fail(path);
    strcpy(address.sun_path, path);
    int socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ < 0 || connect(socket_, (struct sockaddr *)&address, sizeof address) < 0) floors_fail("connect");
    return socket_;
}

// Returns false if the service may end. Otherwise terminates the process.
static bool lost(const char *call) {
    if (!ids) floors_fail(call);
    return false;
}

static void write_id(const char *text) {
    const char *id = strstr(text, "\"id\":\"");
    if (!id) fprintf(stderr, "no id in the response:\n%s\n", text), exit(1);
    id += strlen("\"id\":\"");
    if (fprintf(ids, "%.*s\n", (int)strcspn(id, "\""), id) < 0) floors_fail("the file of the ids");
}

// Reads one response, whose head must contain Content-Length. Terminates the process if its status is not 20x. Returns
// false if the service has ended.
static bool read_response(int socket_) {
    static _Thread_local char text[HEAD + 1];
    size_t size = 0;
    for (;;) {
        ssize_t count = read(socket_, text + size, HEAD - size);
        if (count <= 0) return errno = count ? errno : ECONNRESET, lost("read");
        size += count;
        text[size] = 0;
        char *end = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "\r\ncontent-length:");
        if (!end) continue;
        if (strncmp(text, "HTTP/1.1 20", 11) || !length) fprintf(stderr, "%s\n", text), exit(1);
        if (size < (size_t)(end + 4 - text) + strtoul(length + 17, NULL, 10)) continue;
        if (ids) write_id(end);
        return true;
    }
}

static void record(struct connection *connection, int64_t latency) {
    // The capacity is the smallest power of two that is not below the count.
    long count = connection->count;
    if ((count & (count - 1)) == 0) {
        size_t size = (count ? 2 * count : 1) * sizeof latency;
        connection->latencies = realloc(connection->latencies, size);
        if (!connection->latencies) floors_fail("realloc");
    }
    connection->latencies[connection->count++] = latency;
}

static void *post(void *context) {
    struct connection *connection = context;
    int socket_ = open_socket();
    while (__atomic_fetch_sub(&left, 1, __ATOMIC_RELAXED) > 0) {
        int64_t start = floors_now(CLOCK_MONOTONIC);
        bool is_sent = send(socket_, request, request_size, MSG_NOSIGNAL) == (ssize_t)request_size || lost("send");
        if (!is_sent || !read_response(socket_)) break;
        record(connection, floors_now(CLOCK_MONOTONIC) - start);
    }
    close(socket_);
    return NULL;
}

static void report(struct connection *connections, int count, int64_t duration) {
    long total = 0;
    for (int i = 0; i < count; i++) total += connections[i].count;
    if (!total) fprintf(stderr, "no request was accepted\n"), exit(1);
    int64_t *latencies = malloc(total * sizeof *latencies), *next = latencies;
    if (!latencies) floors_fail("malloc");
    for (int i = 0; i < count; i++) {
        if (!connections[i].count) continue;
        memcpy(next, connections[i].latencies, connections[i].count * sizeof *next);
        next += connections[i].count;
    }
    printf("rate %.1f\n", total * 1e9 / duration);
    floors_report("", latencies, total);
}

int main(int count, char **arguments) {
    if (count != 5 && count != 6)
        return fprintf(stderr, "usage: control_socket SOCKET CONNECTIONS COUNT MESSAGE [IDS]\n"), 64;
    path = arguments[1];
    int connection_count = atoi(arguments[2]);
    left = atol(arguments[3]);
    if (count == 6 && !(ids = fopen(arguments[5], "w"))) floors_fail(arguments[5]);
    request_size = snprintf(
        request, sizeof request,
        "POST /v1/requests HTTP/1.1\r\nHost: netwatch\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
        strlen(arguments[4]), arguments[4]);
    if (request_size >= sizeof request) errno = EMSGSIZE, floors_fail("message");
    struct connection connections[connection_count];
    memset(connections, 0, sizeof connections);
    int64_t start = floors_now(CLOCK_MONOTONIC);
    for (int i = 0; i < connection_count; i++)
        if (pthread_create(&connections[i].thread, NULL, post, connections + i)) floors_fail("pthread_create");
    for (int i = 0; i < connection_count; i++) pthread_join(connections[i].thread, NULL);
    report(connections, connection_count, floors_now(CLOCK_MONOTONIC) - start);
    if (ids && fclose(ids)) floors_fail("the file of the ids");
}
