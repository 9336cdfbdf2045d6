internal import Glibc

/// Finds out whether name servers respond. Asks each of them over UDP for the name servers of the root zone, which
/// every resolver knows.
package enum NameServerProbe {
    /// The result for one server.
    package enum Outcome: Hashable, Sendable {
        /// The server responded with this response code (RFC 1035 §4.1.1): 0 is success, 2 is SERVFAIL.
        case answered(code: UInt8)
        /// There was no response in time.
        case silent
        /// The query could not be sent, or the machine of the server refused it.
        case unreachable(errno: CInt)
        /// The text is not an IP address.
        case notAnAddress
    }

    /// The number of times that a query is sent, because UDP may lose it.
    private static let attempts = 2

    /// Asks all servers at the same time. Blocks until all have responded, or until the time is over.
    ///
    /// - Parameters:
    ///   - servers: The addresses, as `resolv.conf(5)` has them.
    ///   - port: The port of the servers. Default 53.
    ///   - timeout: The maximum time for all responses together. Default 2 s, after which the resolver of the process
    ///     also calls a name server silent.
    /// - Returns: One outcome per server, in the same order.
    package static func ask(
        _ servers: [String],
        port: UInt16 = 53,
        timeout: Duration = .seconds(2)
    ) -> [Outcome] {
        let queries = servers.map { NameServerQuery(to: $0, port: port) }
        let start = ContinuousClock.now
        for attempt in 1...attempts {
            for query in queries { query.send() }
            wait(for: queries, until: start + timeout * attempt / attempts)
        }
        return queries.map { $0.outcome ?? .silent }
    }

    private static func wait(for queries: [NameServerQuery], until deadline: ContinuousClock.Instant) {
        while case let open = queries.filter({ $0.outcome == nil }), !open.isEmpty {
            let rest = ContinuousClock.now.duration(to: deadline) / .milliseconds(1)
            guard rest > 0 else { return }
            var descriptors = open.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
            guard poll(&descriptors, nfds_t(descriptors.count), CInt(rest.rounded(.up))) > 0 else { continue }
            for (query, descriptor) in zip(open, descriptors) where descriptor.revents != 0 {
                query.receive()
            }
        }
    }
}

/// A query to one server, and its socket.
private final class NameServerQuery {
    /// `nil` while the query is open.
    private(set) var outcome: NameServerProbe.Outcome?
    /// The connected socket; negative if there is none.
    let descriptor: CInt
    private let message: [UInt8]

    init(to server: String, port: UInt16) {
        let id = UInt16.random(in: 0 ... .max)
        // The header (RFC 1035 §4.1.1) with the flag RD and one question: the name `.`, type NS, class IN.
        message =
            [UInt8(id >> 8), UInt8(truncatingIfNeeded: id), 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]
            + [0, 0, 2, 0, 1]
        guard let address = IPAddress(server) else {
            (descriptor, outcome) = (-1, .notAnAddress)
            return
        }
        let family = address.family == .ipv4 ? AF_INET : AF_INET6
        let type = CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        descriptor = socket(family, type, 0)
        guard descriptor >= 0 else {
            outcome = .unreachable(errno: errno)
            return
        }
        // The kernel passes only responses of this server to a connected socket, and its errors.
        let isConnected = address.withSocketAddress(port: port) { connect(descriptor, $0, $1) } == 0
        if !isConnected { outcome = .unreachable(errno: errno) }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    func send() {
        guard outcome == nil, Glibc.send(descriptor, message, message.count, CInt(MSG_NOSIGNAL)) < 0 else {
            return
        }
        fail(errno)
    }

    func receive() {
        var bytes = [UInt8](repeating: 0, count: 512)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        guard count >= 0 else { return fail(errno) }
        // A response has the id of the query and the flag QR. Anything else is ignored.
        guard count >= 12, bytes[..<2] == message[..<2], bytes[2] & 0x80 != 0 else { return }
        outcome = .answered(code: bytes[3] & 0x0f)
    }

    private func fail(_ errno: CInt) {
        guard ![EAGAIN, EINTR].contains(errno) else { return }
        outcome = .unreachable(errno: errno)
    }
}
