internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchService

@Suite struct SpareDescriptorTests {
    @Test func `a client reads that the service is short of descriptors, also the next one`() throws {
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
}
