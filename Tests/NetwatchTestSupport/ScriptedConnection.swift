internal import CNetwatchLinux
internal import Glibc
internal import NetwatchEventLoop

/// One connection of a ``ScriptedServer``, served on its own thread. The caller of ``serve()`` closes the descriptor.
struct ScriptedConnection {
    /// The error that ends the connection: the client or the script has closed it, or the request is invalid.
    private struct Ended: Error {}

    /// `POLLRDHUP` of `poll(2)`, which Swift's Glibc module does not export.
    private static let peerHasClosed: Int16 = 0x2000

    private let descriptor: CInt
    private let number: Int
    private let server: ScriptedServerCore
    private var buffer: [UInt8] = []

    init(_ descriptor: CInt, number: Int, server: ScriptedServerCore) {
        self.descriptor = descriptor
        self.number = number
        self.server = server
    }

    /// Reads requests and performs the actions of the script, until the connection ends.
    mutating func serve() {
        do {
            if server.mode == .deaf { return try waitWithoutReading() }
            while true {
                let request = try nextRequest()
                try perform(server.script(request), for: request)
            }
        } catch {}
    }

    // MARK: Acting

    private func perform(_ action: ScriptedServer.Action, for request: ScriptedServer.Request) throws {
        switch action {
        case .keep: return
        case .close: throw Ended()
        case .reset:
            closeWithReset()
            throw Ended()
        case .respond(let status, let headers, let body):
            try write(Self.response(status, headers, request.method == "HEAD" ? nil : body))
        case .send(let bytes, let next):
            try write(bytes)
            try perform(next, for: request)
        case .stall(let next):
            try waitForRelease()
            try perform(next, for: request)
        case .flood(let bytes):
            while true { try write(bytes) }
        case .drip(let bytes):
            for index in sequence(first: 0, next: { ($0 + 1) % bytes.count }) {
                try write([bytes[index]])
                // The rate of the drip. This blocks only the thread of this connection.
                poll(nil, 0, 50)
            }
        }
    }

    private static func response(
        _ status: Int,
        _ headers: [ScriptedServer.Header],
        _ body: [UInt8]?
    ) -> [UInt8] {
        var text = "HTTP/1.1 \(status) Scripted\r\n"
        for header in headers { text += "\(header.name): \(header.value)\r\n" }
        let framing = ["content-length", "transfer-encoding"]
        let isFramed = headers.contains { framing.contains($0.name.lowercased()) }
        let hasNoBody = status < 200 || status == 204 || status == 304
        if !isFramed, !hasNoBody { text += "Content-Length: \(body?.count ?? 0)\r\n" }
        return Array("\(text)\r\n".utf8) + (body ?? [])
    }

    private func closeWithReset() {
        var setting = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &setting, socklen_t(MemoryLayout<linger>.size))
    }

    private func waitForRelease() throws {
        var polled = [
            pollfd(fd: server.released.rawValue, events: Int16(POLLIN), revents: 0),
            pollfd(fd: descriptor, events: Self.peerHasClosed, revents: 0),
        ]
        try systemCall("poll") { poll(&polled, 2, -1) }
        if polled[0].revents == 0 { throw Ended() }
    }

    private func waitWithoutReading() throws {
        var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        try systemCall("poll") { poll(&polled, 1, -1) }
        server.record { $0.unread += 1 }
        try waitForRelease()
    }

    private func write(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = try rest.withUnsafeBytes { rest in
                try systemCall("send") { send(descriptor, rest.baseAddress, rest.count, CInt(MSG_NOSIGNAL)) }
            }
            rest = rest.dropFirst(count)
        }
    }

    // MARK: Reading

    private mutating func nextRequest() throws -> ScriptedServer.Request {
        let lines = try readHead().split(separator: "\r\n", omittingEmptySubsequences: true)
        let start = lines.first?.split(separator: " ") ?? []
        guard start.count == 3 else { throw Ended() }
        let headers = lines.dropFirst().map { line in
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let value = parts.count > 1 ? parts[1].drop { $0 == " " } : ""
            return ScriptedServer.Header(String(parts[0]), String(value))
        }
        let body = try readBody(headers)
        let (method, target, connection) = (String(start[0]), String(start[1]), number)
        return server.record { log in
            let request = ScriptedServer.Request(
                method: method,
                target: target,
                headers: headers,
                body: body,
                connection: connection,
                number: log.requests.count + 1
            )
            log.requests.append(request)
            return request
        }
    }

    private mutating func readHead() throws -> String {
        let end = Array("\r\n\r\n".utf8)
        var searched = 0
        while true {
            while searched + end.count <= buffer.count {
                if buffer[searched..<searched + end.count].elementsEqual(end) {
                    return String(decoding: take(searched + end.count), as: UTF8.self)
                }
                searched += 1
            }
            try fill()
        }
    }

    private mutating func readBody(_ headers: [ScriptedServer.Header]) throws -> [UInt8] {
        if headers.contains(where: { $0.name.lowercased() == "transfer-encoding" }) {
            return try readChunks()
        }
        let length = headers.first { $0.name.lowercased() == "content-length" }
        let count = length.flatMap { Int($0.value) } ?? 0
        while buffer.count < count { try fill() }
        return take(count)
    }

    /// Reads a chunked body (RFC 9112 §7.1) without trailers.
    private mutating func readChunks() throws -> [UInt8] {
        var body: [UInt8] = []
        while true {
            let size = try readLine()
            guard let count = Int(size, radix: 16) else { throw Ended() }
            while buffer.count < count + 2 { try fill() }
            body += take(count)
            _ = take(2)
            if count == 0 { return body }
        }
    }

    private mutating func readLine() throws -> String {
        while true {
            if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
                return String(decoding: take(end + 1).dropLast(2), as: UTF8.self)
            }
            try fill()
        }
    }

    private mutating func take(_ count: Int) -> [UInt8] {
        defer { buffer.removeFirst(count) }
        return Array(buffer.prefix(count))
    }

    private mutating func fill() throws {
        var chunk = [UInt8](repeating: 0, count: 16384)
        let count = try systemCall("recv") { recv(descriptor, &chunk, chunk.count, 0) }
        guard count > 0 else { throw Ended() }
        buffer += chunk.prefix(count)
    }
}
