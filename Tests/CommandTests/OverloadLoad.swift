internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Synchronization

/// Concurrent clients of a control socket that wait, send nothing, send nothing after a call, send slowly, or do not
/// read their responses. They continue until ``release()``.
final class OverloadLoad: Sendable {
    struct Size {
        var waits = 0
        var silent = 0
        var idle = 0
        var slow = 0
        var listings = 0
        var uploads = 0
    }

    private let path: String
    private let isReleased = Atomic<Bool>(false)

    /// - Parameters:
    ///   - path: The path of the control socket.
    ///   - waiting: The id of an unfinished request, for whose end the waiting clients wait.
    init(_ path: String, _ size: Size, waiting id: String) throws {
        self.path = path
        try hold(size.waits, "GET /v1/requests/\(id)?wait=300 HTTP/1.1\r\nHost: x\r\n\r\n")
        try hold(size.silent, "")
        // The service keeps fewer idle connections than this. Each connection that replaces a closed one makes a call.
        try hold(size.idle, atOnce: 10, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        try hold(size.listings, "GET /v1/requests?limit=1000 HTTP/1.1\r\nHost: x\r\n\r\n")
        for number in 0..<size.uploads {
            let half = String(repeating: "x", count: 1 << 19)
            let target = "/v1/bodies/abandoned-\(number)?offset=0"
            try hold(1, "PATCH \(target) HTTP/1.1\r\nHost: x\r\nContent-Length: \(1 << 20)\r\n\r\n" + half)
        }
        for _ in 0..<size.slow { try trickle() }
    }

    func release() {
        isReleased.store(true, ordering: .relaxed)
    }

    deinit {
        release()
    }

    /// Keeps `count` connections open that have sent `text`. Replaces the connections that the service has closed ten
    /// times per second, at most `limit` of them each time, so that the load does not depend on how fast the service
    /// closes them.
    private func hold(_ count: Int, atOnce limit: Int = .max, _ text: String) throws {
        guard count > 0 else { return }
        try startThread { [self] in
            var clients: [RawClient] = []
            while !isReleased.load(ordering: .relaxed) {
                clients.removeAll { $0.isAtEnd() }
                for _ in 0..<min(count - clients.count, limit) {
                    guard let client = try? RawClient(path) else { break }
                    try? client.send(text)
                    clients.append(client)
                }
                usleep(100_000)
            }
        }
    }

    /// Sends a request one byte per second, repeatedly.
    private func trickle() throws {
        try startThread { [self] in
            while !isReleased.load(ordering: .relaxed) {
                guard let client = try? RawClient(path) else { continue }
                for byte in "GET /v1/queue/stats HTTP/1.1\r\n".utf8 where !isReleased.load(ordering: .relaxed)
                {
                    guard (try? client.send([byte])) != nil, !client.isAtEnd() else { break }
                    sleep(1)
                }
            }
        }
    }

    private func startThread(_ body: @escaping @Sendable () -> Void) throws {
        try startDetachedThread(named: "test-abuse", stackSize: 256 << 10, body)
    }
}

/// The resident memory of a process.
struct ResidentMemory {
    let mebibytes: Double

    /// Reads `VmRSS` from `/proc/PID/status`.
    init?(of pid: Int32) {
        guard let status = try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8),
            let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmRSS:") }),
            let kibibytes = line.split(separator: " ").dropFirst().first.flatMap({ Double($0) })
        else { return nil }
        mebibytes = kibibytes / 1024
    }
}
