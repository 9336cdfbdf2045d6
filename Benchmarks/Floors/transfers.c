// The floor of HTTP transfers with libcurl: its multi interface on epoll in one thread. Creates easy handles only once,
// and checks only the length of received data.
//
// Usage: transfers requests CLIENTS SECONDS URL    GET requests with CLIENTS in flight, after 0.25 s of warm-up
//        transfers download URL [FILE]             discards the body, or writes it to a file and removes the file
//        transfers upload FILE URL                 sends the file with PUT
//        transfers slow COUNT URL                  COUNT GET requests that are all in flight at once
#include "allocations.h"
#include "figures.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EVENTS = 256 };

typedef struct {
    CURL *handle;
    int64_t received;
    int file;
} transfer;

static CURLM *multi;
static int epoll_, running;
static int64_t wakes_at = -1, deadline, succeeded, failed;

// MARK: The loop

static int on_socket(CURL *easy, curl_socket_t socket_, int interest, void *context, void *known) {
    (void)easy, (void)context;
    if (interest == CURL_POLL_REMOVE) return epoll_ctl(epoll_, EPOLL_CTL_DEL, socket_, NULL), 0;
    struct epoll_event event = {.data.fd = socket_};
    if (interest & CURL_POLL_IN) event.events |= EPOLLIN;
    if (interest & CURL_POLL_OUT) event.events |= EPOLLOUT;
    if (epoll_ctl(epoll_, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket_, &event) < 0) floors_fail("epoll_ctl");
    if (!known) curl_multi_assign(multi, socket_, &epoll_);
    return 0;
}

static int on_timer(CURLM *handle, long milliseconds, void *context) {
    (void)handle, (void)context;
    wakes_at = milliseconds < 0 ? -1 : floors_now(CLOCK_MONOTONIC) + milliseconds * INT64_C(1000000);
    return 0;
}

static int milliseconds_to_wait(void) {
    if (wakes_at < 0) return -1;
    int64_t left = wakes_at - floors_now(CLOCK_MONOTONIC);
    return left <= 0 ? 0 : (left + 999999) / 1000000;
}

static void start(transfer *it) {
    it->received = 0;
    if (curl_multi_add_handle(multi, it->handle) != CURLM_OK) floors_fail("curl_multi_add_handle");
    running++;
}

static void count_end(CURL *handle, CURLcode code, int64_t received) {
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    if (code == CURLE_OK && status == 200 && received >= 0) succeeded++;
    else failed++;
}

static void take_ended(void) {
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(multi, &left));) {
        CURL *handle = message->easy_handle;
        CURLcode code = message->data.result;
        transfer *it;
        curl_easy_getinfo(handle, CURLINFO_PRIVATE, &it);
        curl_multi_remove_handle(multi, handle);
        running--;
        count_end(handle, code, it->received);
        if (floors_now(CLOCK_MONOTONIC) < deadline) start(it);
    }
}

static void run(void) {
    struct epoll_event events[EVENTS];
    int ignored;
    while (running > 0) {
        int count = epoll_wait(epoll_, events, EVENTS, milliseconds_to_wait());
        for (int i = 0; i < count; i++) {
            int what = events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0;
            if (events[i].events & EPOLLOUT) what |= CURL_CSELECT_OUT;
            if (events[i].events & (EPOLLERR | EPOLLHUP)) what |= CURL_CSELECT_ERR;
            curl_multi_socket_action(multi, events[i].data.fd, what, &ignored);
        }
        if (milliseconds_to_wait() == 0) {
            wakes_at = -1;
            curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &ignored);
        }
        take_ended();
    }
}

// MARK: Transfers

static size_t receive(char *bytes, size_t size, size_t count, void *context) {
    transfer *it = context;
    it->received += size * count;
    if (it->file >= 0 && write(it->file, bytes, size * count) != (ssize_t)(size * count)) return 0;
    return size * count;
}

static size_t send_(char *bytes, size_t size, size_t count, void *context) {
    transfer *it = context;
    ssize_t result = read(it->file, bytes, size * count);
    return result < 0 ? CURL_READFUNC_ABORT : (size_t)result;
}

static transfer *make(int count, const char *url) {
    transfer *all = calloc(count, sizeof *all);
    for (transfer *it = all; it < all + count; it++) {
        it->file = -1;
        if (!(it->handle = curl_easy_init())) floors_fail("curl_easy_init");
        curl_easy_setopt(it->handle, CURLOPT_URL, url);
        curl_easy_setopt(it->handle, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(it->handle, CURLOPT_PROXY, "");
        curl_easy_setopt(it->handle, CURLOPT_PRIVATE, it);
        curl_easy_setopt(it->handle, CURLOPT_WRITEFUNCTION, receive);
        curl_easy_setopt(it->handle, CURLOPT_WRITEDATA, it);
    }
    return all;
}

// Runs `count` transfers at a time until the time `end`. If this time has passed, runs exactly `count` transfers.
// Returns the number of successful transfers.
static int64_t load(transfer *all, int count, int64_t end) {
    deadline = end;
    succeeded = failed = 0;
    for (int i = 0; i < count; i++) start(&all[i]);
    run();
    return succeeded;
}

// MARK: Measurements

// Returns the peak resident memory of this process in KiB (`VmHWM`).
static long peak_memory(void) {
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    long kibibytes = 0;
    while (file && fgets(line, sizeof line, file)) sscanf(line, "VmHWM: %ld", &kibibytes);
    return kibibytes;
}

static void requests(int clients, double seconds, const char *url) {
    transfer *all = make(clients, url);
    int64_t warmed = load(all, clients, floors_now(CLOCK_MONOTONIC) + 250000000);
    int64_t allocated = floors_allocations(), switched = floors_context_switches();
    double used = floors_processor_seconds();
    int64_t began = floors_now(CLOCK_MONOTONIC);
    int64_t count = load(all, clients, began + (int64_t)(seconds * 1e9));
    printf("rate %.1f\n", count / ((floors_now(CLOCK_MONOTONIC) - began) / 1e9));
    printf("cpu %.3f\n", (floors_processor_seconds() - used) / count * 1e6);
    printf("switches %.3f\n", (double)(floors_context_switches() - switched) / count);
    printf("requests %ld\n", (long)(warmed + count));
    if (allocated >= 0) printf("allocations %.1f\n", (double)(floors_allocations() - allocated) / count);
    if (failed > 0) exit(1);
}

// Runs one transfer and prints its figures.
//
// bytes: the length of the upload; 0 for a download
static void one(transfer *it, int64_t bytes) {
    double used = floors_processor_seconds();
    int64_t began = floors_now(CLOCK_MONOTONIC);
    if (load(it, 1, 0) != 1) exit(1);
    // netwatch syncs a downloaded file, too, before it replaces an existing one.
    if (!bytes && it->file >= 0 && fdatasync(it->file) < 0) floors_fail("fdatasync");
    bytes = bytes ? bytes : it->received;
    printf("throughput %.1f\n", bytes / 1048576.0 / ((floors_now(CLOCK_MONOTONIC) - began) / 1e9));
    printf("cpu %.3f\nmemory %ld\n", (floors_processor_seconds() - used) * 1e3, peak_memory());
}

static void download(const char *url, const char *path) {
    transfer *it = make(1, url);
    if (path && (it->file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) < 0) floors_fail(path);
    one(it, 0);
    if (path) unlink(path);
}

static void upload(const char *path, const char *url) {
    transfer *it = make(1, url);
    struct stat status;
    it->file = open(path, O_RDONLY | O_CLOEXEC);
    if (it->file < 0 || fstat(it->file, &status) < 0) floors_fail(path);
    curl_easy_setopt(it->handle, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(it->handle, CURLOPT_INFILESIZE_LARGE, (curl_off_t)status.st_size);
    curl_easy_setopt(it->handle, CURLOPT_READFUNCTION, send_);
    curl_easy_setopt(it->handle, CURLOPT_READDATA, it);
    // netwatch does not wait for `100 Continue` either.
    curl_easy_setopt(it->handle, CURLOPT_HTTPHEADER, curl_slist_append(NULL, "Expect:"));
    one(it, status.st_size);
}

static void slow(int count, const char *url) {
    transfer *all = make(count, url);
    double used = floors_processor_seconds();
    int64_t began = floors_now(CLOCK_MONOTONIC);
    printf("answered %ld\n", (long)load(all, count, 0));
    printf("seconds %.3f\n", (floors_now(CLOCK_MONOTONIC) - began) / 1e9);
    printf("cpu %.3f\nmemory %ld\n", (floors_processor_seconds() - used) / count * 1e6, peak_memory());
}

int main(int argc, char **argv) {
    const char *what = argc > 2 ? argv[1] : "";
    curl_global_init(CURL_GLOBAL_ALL);
    multi = curl_multi_init();
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    if (!multi || epoll_ < 0) floors_fail("epoll_create1");
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    if (!strcmp(what, "requests") && argc == 5) requests(atoi(argv[2]), atof(argv[3]), argv[4]);
    else if (!strcmp(what, "download")) download(argv[2], argc > 3 ? argv[3] : NULL);
    else if (!strcmp(what, "upload") && argc == 4) upload(argv[2], argv[3]);
    else if (!strcmp(what, "slow") && argc == 4) slow(atoi(argv[2]), argv[3]);
    else return 2;
}
