internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchService

@Suite(.timeLimit(.minutes(5))) struct SpareDescriptorTests {
    @Test func `clients read that the service is short of descriptors`() throws {
        let spare = SpareDescriptor()
        for _ in 0..<2 {
            var ends: [CInt] = [-1, -1]
            let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
            try systemCall("socketpair") { socketpair(AF_UNIX, type, 0, &ends) }
            let client = FileDescriptor(owning: ends[0])
            let request = Array("GET /v1/requests HTTP/1.1\r\nHost: x\r\n\r\n".utf8)
            #expect(send(client.rawValue, request, request.count, 0) == request.count)
            spare.refuse { ends[1] }
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = recv(client.rawValue, &buffer, buffer.count, 0)
            let response = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
            #expect(response.hasPrefix("HTTP/1.1 503 Service Unavailable\r\n"), "\(response)")
            #expect(response.contains("\r\nretry-after: 1\r\n"))
            #expect(response.contains("short_of_descriptors"))
            #expect(recv(client.rawValue, &buffer, buffer.count, 0) == 0, "closed, not reset")
        }
    }

    @Test func `a client that sends a long body reads the response`() async throws {
        var ends: [CInt] = [-1, -1]
        let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        try systemCall("socketpair") { socketpair(AF_UNIX, type, 0, &ends) }
        let (ours, theirs) = (ends[0], ends[1])
        async let response = offPool { try Self.upload(200_000, to: ours) }
        try await offPool { SpareDescriptor(timeout: .seconds(60)).refuse { theirs } }
        #expect(try await response.hasPrefix("HTTP/1.1 503 Service Unavailable\r\n"))
    }

    /// Sends a request with a body of `length` bytes, half of it only after the response has begun, and returns the
    /// response.
    private static func upload(_ length: Int, to descriptor: CInt) throws -> String {
        let client = FileDescriptor(owning: descriptor)
        let head = "POST /v1/requests HTTP/1.1\r\nHost: x\r\nContent-Length: \(length)\r\n\r\n"
        let half = [UInt8](repeating: 0, count: length / 2)
        try sendAll(Array(head.utf8) + half, to: client.rawValue)
        var pending = pollfd(fd: client.rawValue, events: Int16(POLLIN), revents: 0)
        try systemCall("poll") { poll(&pending, 1, -1) }
        try sendAll(half, to: client.rawValue)
        var (response, buffer): ([UInt8], [UInt8]) = ([], Array(repeating: 0, count: 4096))
        while true {
            let count = try systemCall("recv") { recv(client.rawValue, &buffer, buffer.count, 0) }
            guard count > 0 else { return String(decoding: response, as: UTF8.self) }
            response += buffer.prefix(count)
        }
    }

    private static func sendAll(_ bytes: [UInt8], to descriptor: CInt) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = try rest.withUnsafeBytes { rest in
                try systemCall("send") {
                    send(descriptor, rest.baseAddress, rest.count, CInt(MSG_NOSIGNAL))
                }
            }
            rest = rest.dropFirst(count)
        }
    }
}
