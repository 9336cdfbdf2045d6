internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@Suite(.timeLimit(.minutes(5))) struct NameServerProbeTests {
    /// A UDP socket that sends to each query the messages that a closure returns.
    private final class Server: Sendable {
        /// The thread owns the socket, too, because after the end of the server its number may belong to another file.
        private final class Socket: Sendable {
            let descriptor: FileDescriptor

            init(owning number: CInt) { descriptor = FileDescriptor(owning: number) }
        }

        private let socket: Socket

        /// - Parameter port: 0 to choose a free port.
        init(
            _ address: String,
            port: UInt16 = 0,
            _ replies: @escaping @Sendable (_ query: [UInt8]) -> [[UInt8]] = { _ in [] }
        ) throws {
            let type = CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue)
            let number = try systemCall("socket") { Glibc.socket(AF_INET, type, 0) }
            let socket = Socket(owning: number)
            self.socket = socket
            try systemCall("bind") {
                IPAddress(address)!.withSocketAddress(port: port) { bind(number, $0, $1) }
            }
            try startDetachedThread(named: "name-server") {
                while let (query, sender) = Self.receive(socket.descriptor.rawValue) {
                    for reply in replies(query) { Self.send(reply, to: sender, socket.descriptor.rawValue) }
                }
            }
        }

        deinit { shutdown(socket.descriptor.rawValue, CInt(SHUT_RDWR)) }

        var port: UInt16 {
            var address = sockaddr_in()
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            withUnsafeMutableBytes(of: &address) { bytes in
                let pointer = bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
                _ = getsockname(socket.descriptor.rawValue, pointer, &size)
            }
            return UInt16(bigEndian: address.sin_port)
        }

        private static func receive(_ socket: CInt) -> ([UInt8], sockaddr_in)? {
            var bytes = [UInt8](repeating: 0, count: 512)
            var sender = sockaddr_in()
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let count = withUnsafeMutableBytes(of: &sender) { raw in
                let pointer = raw.baseAddress!.assumingMemoryBound(to: sockaddr.self)
                return recvfrom(socket, &bytes, bytes.count, 0, pointer, &size)
            }
            return count > 0 ? (Array(bytes.prefix(count)), sender) : nil
        }

        private static func send(_ bytes: [UInt8], to address: sockaddr_in, _ socket: CInt) {
            withUnsafeBytes(of: address) { raw in
                let pointer = raw.baseAddress!.assumingMemoryBound(to: sockaddr.self)
                _ = sendto(socket, bytes, bytes.count, 0, pointer, socklen_t(raw.count))
            }
        }
    }

    /// Returns a response without records.
    private static func response(to query: [UInt8], code: UInt8) -> [UInt8] {
        Array(query[..<2]) + [0x81, 0x80 | code] + query[4...]
    }

    private static func ask(_ servers: [String], _ port: UInt16, _ timeout: Duration) async throws
        -> [NameServerProbe.Outcome]
    {
        try await offPool { NameServerProbe.ask(servers, port: port, timeout: timeout) }
    }

    @Test func `each server has its own outcome, and other messages than a response are ignored`()
        async throws
    {
        let queries = Recorder<[UInt8]>()
        let first = try Server("127.0.0.1") { query in
            queries.record(query)
            let other = [query[0] ^ 1] + Self.response(to: query, code: 5).dropFirst()
            return [other, query, [1], Self.response(to: query, code: 0)]
        }
        let second = try Server("127.0.0.2", port: first.port) { [Self.response(to: $0, code: 2)] }
        let outcomes = try await Self.ask(
            ["127.0.0.2", "127.0.0.1", "127.0.0.3", "localhost"],
            first.port,
            .seconds(60)
        )
        #expect(
            outcomes == [
                .answered(code: 2), .answered(code: 0), .unreachable(errno: ECONNREFUSED), .notAnAddress,
            ]
        )
        // One question: the name servers of the root zone, with recursion.
        let query = try #require(queries.values.first)
        #expect(query.dropFirst(2) == [1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1])
        withExtendedLifetime((first, second)) {}
    }

    @Test func `a server that does not respond is silent, and gets the query again`() async throws {
        let queries = Recorder<[UInt8]>()
        let server = try Server("127.0.0.1") { query in
            queries.record(query)
            return []
        }
        let outcomes = try await Self.ask(["127.0.0.1"], server.port, .milliseconds(100))
        #expect(outcomes == [.silent])
        try await queries.wait { $0.count == 2 }
        #expect(queries.values[0] == queries.values[1])
        withExtendedLifetime(server) {}
    }

    @Test func `without servers there are no outcomes`() {
        #expect(NameServerProbe.ask([]) == [])
    }
}
