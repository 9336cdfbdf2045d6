internal import Glibc
internal import NetwatchEventLoop

/// A name server in a network namespace, with records that a test can change.
///
/// It serves UDP, and TCP for replies that are too long for UDP. It replies with NXDOMAIN for a name without a record.
/// Releasing the last reference stops it.
package final class ScriptedNameServer: Sendable {
    /// The reply to queries for a name.
    package enum Record: Sendable {
        /// The A and AAAA records of these addresses.
        case addresses([String])
        /// No reply until ``answerUnanswered()``.
        case silence
        /// The response code 2, SERVFAIL.
        case failure
        /// Only a CNAME record with this target.
        case alias(String)
    }

    /// The names of the queries over UDP so far, in lower case, in the order of arrival.
    package let queries = Recorder<String>()

    private struct Unanswered {
        let query: DNSMessage
        let sender: sockaddr_in
    }

    private struct State {
        var records: [String: Record] = [:]
        var unanswered: [Unanswered] = []
    }

    /// The UDP socket of the server and of its thread. The thread owns it too, because after the end of the server its
    /// number may belong to a socket of another test.
    private final class Socket: Sendable {
        let descriptor: FileDescriptor

        init(owning rawValue: CInt) { descriptor = FileDescriptor(owning: rawValue) }

        var rawValue: CInt { descriptor.rawValue }
    }

    private let socket: Socket
    private let state = Lock(State())
    private let streams = Lock<SocketServer?>(nil)

    /// Starts the server on port 53.
    package init(in namespace: NetworkNamespace, address: String = VethTestbed.farAddress) throws {
        socket = Socket(owning: try namespace.run { Self.bound(to: address) }.get())
        let streams = try namespace.run {
            Result {
                try SocketServer(address: address, port: 53) { [weak self] in self?.answer($0) }
            }
        }.get()
        self.streams.withLock { $0 = streams }
        try startDetachedThread(named: "name-server") { [weak self, socket] in
            while let (query, sender) = Self.receive(socket.rawValue) { self?.take(query, sender) }
        }
    }

    deinit {
        shutdown(socket.rawValue, CInt(SHUT_RDWR))
    }

    /// Sets the record of a name. With `nil` the name does not exist.
    package func set(_ name: String, _ record: Record?) {
        state.withLock { $0.records[name] = record }
    }

    package func set(_ name: String, _ addresses: String...) {
        set(name, .addresses(addresses))
    }

    /// Replies to all queries that got no reply because of ``Record/silence``, according to the current records.
    package func answerUnanswered() {
        let late = state.withLock { state in
            defer { state.unanswered = [] }
            return state.unanswered
        }
        for query in late { respond(to: query.query, query.sender) }
    }

    private func take(_ query: DNSMessage, _ sender: sockaddr_in) {
        queries.record(query.name)
        respond(to: query, sender)
    }

    private func respond(to query: DNSMessage, _ sender: sockaddr_in) {
        guard let response = response(to: query) else {
            return state.withLock { $0.unanswered.append(Unanswered(query: query, sender: sender)) }
        }
        // A reply over UDP has at most 512 bytes (RFC 1035 §4.2.1).
        send(response.count > 512 ? query.truncated : response, to: sender)
    }

    private func response(to query: DNSMessage) -> [UInt8]? {
        switch state.withLock({ $0.records[query.name] }) {
        case nil: query.response(code: 3, answers: [])
        case .silence?: nil
        case .failure?: query.response(code: 2, answers: [])
        case .alias(let target)?: query.response(answers: [.init(type: 5, data: DNSMessage.encode(target))])
        case .addresses(let texts)?: query.response(answers: Self.answers(texts, type: query.type))
        }
    }

    private static func answers(_ texts: [String], type: UInt16) -> [DNSMessage.Answer] {
        texts.compactMap { IPAddress($0) }
            .map { DNSMessage.Answer(type: $0.family == .ipv4 ? 1 : 28, data: $0.bytes) }
            .filter { $0.type == type }
    }

    /// Replies to the queries on one TCP connection. The C library sends its A and AAAA queries on the same one.
    ///
    /// A length of two bytes precedes each message on TCP (RFC 1035 §4.2.2).
    private func answer(_ peer: SocketPeer) {
        var bytes: [UInt8] = []
        while case let more = peer.read(), !more.isEmpty {
            bytes += more
            while bytes.count >= 2, case let length = Int(bytes[0]) << 8 | Int(bytes[1]),
                bytes.count >= 2 + length
            {
                answer(bytes[2..<(2 + length)], peer)
                bytes.removeFirst(2 + length)
            }
        }
    }

    private func answer(_ message: ArraySlice<UInt8>, _ peer: SocketPeer) {
        guard let query = DNSMessage(message), let response = response(to: query) else { return }
        peer.write([UInt8(response.count >> 8), UInt8(response.count & 0xff)] + response)
    }

    private func send(_ bytes: [UInt8], to address: sockaddr_in) {
        let descriptor = socket.rawValue
        withUnsafeBytes(of: address) { raw in
            let pointer = raw.baseAddress!.assumingMemoryBound(to: sockaddr.self)
            _ = sendto(descriptor, bytes, bytes.count, 0, pointer, socklen_t(raw.count))
        }
    }

    private static func bound(to host: String) -> Result<CInt, SystemError> {
        Result { () throws(SystemError) in
            let type = CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue)
            let descriptor = try systemCall("socket") { Glibc.socket(AF_INET, type, 0) }
            try systemCall("bind \(host)") {
                IPAddress(host)!.withSocketAddress(port: 53) { bind(descriptor, $0, $1) }
            }
            return descriptor
        }
    }

    /// Waits for the next valid query. Returns `nil` when the socket is shut down.
    private static func receive(_ descriptor: CInt) -> (DNSMessage, sockaddr_in)? {
        var bytes = [UInt8](repeating: 0, count: 4096)
        while true {
            var sender = sockaddr_in()
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let count = withUnsafeMutableBytes(of: &sender) { raw in
                let pointer = raw.baseAddress!.assumingMemoryBound(to: sockaddr.self)
                return recvfrom(descriptor, &bytes, bytes.count, 0, pointer, &size)
            }
            if count <= 0 { return nil }
            if let query = DNSMessage(bytes[..<count]) { return (query, sender) }
        }
    }
}
