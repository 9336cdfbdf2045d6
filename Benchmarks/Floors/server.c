#define _GNU_SOURCE
// A server for cases that nginx does not support: many responses that are all open at once, and uploads that are read
// and discarded. It has one thread. The head of a request must arrive in one read.
//
// Usage: server PORT
//     GET /COUNT   Responds immediately with the head and one byte. Sends the other ten bytes, 50 ms apart, once COUNT
//                  requests have arrived, or once no request has arrived for 5 s.
//     PUT          Responds with `200 OK` once the whole body has arrived.
#include "figures.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 1 << 20, EVENTS = 256, PARTS = 10, BETWEEN_PARTS_MS = 50, QUIET_MS = 5000 };

typedef struct {
    int is_waiting;
    int64_t body_left;
} connection;

static connection connections[MOST];
static int epoll_, highest, waiting, wanted, parts_left;
// The time in milliseconds of the next `continue_slow`: when the next byte is due, or when no request has arrived for 5
// s. 0 if there is none.
static int64_t due;

static int64_t milliseconds(void) { return floors_now(CLOCK_MONOTONIC) / 1000000; }

static void answer(int socket_, const char *text) {
    if (send(socket_, text, strlen(text), MSG_NOSIGNAL) < 0 && errno != EPIPE && errno != ECONNRESET)
        floors_fail("send");
}

static void stop_waiting(int socket_) {
    if (connections[socket_].is_waiting) waiting--;
    connections[socket_].is_waiting = 0;
}

static void end(int socket_) {
    stop_waiting(socket_);
    close(socket_);
}

static void take_connection(int listener) {
    int one = 1, socket_ = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket_ < 0) return;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    connections[socket_] = (connection){0};
    struct epoll_event event = {.events = EPOLLIN, .data.fd = socket_};
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, socket_, &event) < 0) floors_fail("epoll_ctl");
    if (socket_ > highest) highest = socket_;
}

static void begin_slow(int socket_, int count) {
    char head[256];
    snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n.", 1 + PARTS);
    answer(socket_, head);
    connections[socket_].is_waiting = 1;
    wanted = count;
    parts_left = PARTS;
    due = milliseconds() + (++waiting < wanted ? QUIET_MS : BETWEEN_PARTS_MS);
}

static void continue_slow(void) {
    parts_left--;
    for (int socket_ = 0; socket_ <= highest; socket_++) {
        if (!connections[socket_].is_waiting) continue;
        answer(socket_, ".");
        if (parts_left == 0) stop_waiting(socket_);
    }
    due = parts_left > 0 ? milliseconds() + BETWEEN_PARTS_MS : 0;
}

static void take_body(int socket_, int64_t count) {
    connection *it = &connections[socket_];
    it->body_left -= count;
    if (it->body_left <= 0) answer(socket_, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}

static void take_request(int socket_, char *text, int64_t count) {
    text[count] = 0;
    char *body = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "\r\nContent-Length:");
    if (!body) return end(socket_);
    if (strncmp(text, "GET /", 5) == 0) return begin_slow(socket_, atoi(text + 5));
    connections[socket_].body_left = length ? atoll(length + strlen("\r\nContent-Length:")) : 0;
    if (strcasestr(text, "\r\nExpect: 100-continue")) answer(socket_, "HTTP/1.1 100 Continue\r\n\r\n");
    take_body(socket_, text + count - (body + 4));
}

static void receive(int socket_) {
    static char buffer[1 << 18];
    int64_t count = recv(socket_, buffer, sizeof buffer - 1, 0);
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) return end(socket_);
    if (connections[socket_].body_left > 0) take_body(socket_, count);
    else take_request(socket_, buffer, count);
}

static int listen_on(int port) {
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0) floors_fail("bind");
    if (listen(listener, 4096) < 0) floors_fail("listen");
    return listener;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    int listener = listen_on(atoi(argv[1]));
    if ((epoll_ = epoll_create1(EPOLL_CLOEXEC)) < 0) floors_fail("epoll_create1");
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[EVENTS];
    epoll_ctl(epoll_, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int64_t left = due - milliseconds();
        int count = epoll_wait(epoll_, events, EVENTS, due == 0 ? -1 : left > 0 ? left : 0);
        for (int i = 0; i < count; i++)
            events[i].data.fd == listener ? take_connection(listener) : receive(events[i].data.fd);
        if (due > 0 && milliseconds() >= due) continue_slow();
    }
}
