internal import CNetwatchTestSupport
internal import Glibc
internal import NetwatchEventLoop

/// A client of a unix socket that sends arbitrary bytes. Unlike `curl` it can send slowly, incorrectly or nothing.
///
/// Its methods block, so tests call them inside ``offPool(_:)``. A method that receives fails after 60 s without data,
/// unless the test sets another timeout.
package final class RawClient {
    private let socket: FileDescriptor
    private var buffered: [UInt8] = []

    /// - Parameters:
    ///   - user: The id of the user as whom the client connects. Only root can connect as another user. Default: `nil`,
    ///     the user of the test.
    ///   - group: The id of the only group of that user.
    package init(_ path: String, as user: UInt32? = nil, inGroup group: UInt32 = 60_001) throws {
        let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = try systemCall("socket") { Glibc.socket(AF_UNIX, type, 0) }
        socket = FileDescriptor(owning: descriptor)
        try setReceiveTimeout(seconds: 60)
        _ = try withUnixAddress(path) { address, length in
            guard let user else { return try systemCall("connect") { connect(descriptor, address, length) } }
            let error = netwatch_connect_as(descriptor, address, length, user, group)
            if error != 0 { throw SystemError(call: "connect as \(user)", errno: error) }
            return 0
        }
    }

    package func setReceiveTimeout(seconds: Int, microseconds: Int = 0) throws {
        var timeout = timeval(tv_sec: seconds, tv_usec: microseconds)
        try systemCall("setsockopt") {
            setsockopt(
                socket.rawValue,
                SOL_SOCKET,
                SO_RCVTIMEO,
                &timeout,
                socklen_t(MemoryLayout<timeval>.size)
            )
        }
    }

    package func send(_ text: String) throws {
        try send(Array(text.utf8))
    }

    package func send(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let sent = try rest.withUnsafeBytes { bytes in
                try systemCall("send") {
                    Glibc.send(socket.rawValue, bytes.baseAddress, bytes.count, CInt(MSG_NOSIGNAL))
                }
            }
            rest = rest.dropFirst(sent)
        }
    }

    /// Shuts down the sending side, so that the server reads the end of the stream.
    package func closeOutput() {
        shutdown(socket.rawValue, CInt(SHUT_WR))
    }

    /// Reads once into the buffer. Returns `false` at the end of the stream.
    package func receiveMore() throws -> Bool {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = try systemCall("recv") { recv(socket.rawValue, &bytes, bytes.count, 0) }
        buffered += bytes.prefix(count)
        return count > 0
    }

    /// Removes the bytes from the buffer and returns them as text.
    package func takeReceived() -> String {
        defer { buffered = [] }
        return String(decoding: buffered, as: UTF8.self)
    }

    /// Reads one response. Its body must have a `Content-Length`.
    ///
    /// - Parameter isHead: Whether the request was a HEAD request, whose response has no body.
    package func response(toHead isHead: Bool = false) throws -> RawResponse {
        while true {
            if let (response, length) = RawResponse.parse(buffered, hasBody: !isHead) {
                buffered.removeFirst(length)
                return response
            }
            guard try receiveMore() else { throw RawClientError.closedEarly(buffered.count) }
        }
    }

    package func request(_ text: String) throws -> RawResponse {
        try send(text)
        return try response()
    }

    /// Waits until the server has closed the connection completely, for at most 60 s. Does not read any data.
    package func waitUntilClosedByServer() throws {
        var polled = pollfd(fd: socket.rawValue, events: 0, revents: 0)
        guard try systemCall("poll", { poll(&polled, 1, 60_000) }) == 1 else {
            throw RawClientError.stillOpen
        }
    }

    /// `POLLRDHUP` of poll(2).
    private static let peerClosed: Int16 = 0x2000

    /// Returns at once whether the server has closed its sending side. Does not read any data.
    package func isAtEnd() -> Bool {
        var polled = pollfd(fd: socket.rawValue, events: Self.peerClosed, revents: 0)
        return poll(&polled, 1, 0) == 1
    }

    /// Waits for the end of the stream or for data. Returns whether the stream ended without further data.
    package func isClosedByServer() throws -> Bool {
        try buffered.isEmpty && !receiveMore()
    }
}

package enum RawClientError: Error {
    case closedEarly(Int)
    case stillOpen
}

package struct RawResponse {
    package let status: Int
    package let headers: [String: String]
    package let body: String

    fileprivate static func parse(_ bytes: [UInt8], hasBody: Bool) -> (RawResponse, length: Int)? {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let end = text.firstRange(of: "\r\n\r\n") else { return nil }
        let lines = text[..<end.lowerBound].split(separator: "\r\n")
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            let sides = line.split(separator: ":", maxSplits: 1)
            headers[sides[0].lowercased()] = sides[1].trimmingPrefix(" ").description
        }
        let headLength = text[..<end.upperBound].utf8.count
        let length = headLength + (hasBody ? Int(headers["content-length"] ?? "0")! : 0)
        guard bytes.count >= length else { return nil }
        let body = String(decoding: bytes[headLength..<length], as: UTF8.self)
        let status = Int(lines[0].split(separator: " ")[1])!
        return (RawResponse(status: status, headers: headers, body: body), length)
    }
}

/// Runs blocking code on a separate thread and waits for its result. On the cooperative pool the code would occupy a
/// thread that the server's tasks need.
package func offPool<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result
{
    try await withCheckedThrowingContinuation { continuation in
        do {
            try startDetachedThread(named: "test-client") {
                continuation.resume(with: Swift.Result { try body() })
            }
        } catch {
            continuation.resume(throwing: error)
        }
    }
}
