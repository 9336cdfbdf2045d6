import ClientCore
import Foundation
import NetwatchTestSupport
import Testing

/// Streams in a program that was written for Alamofire 4.
@Suite struct StreamGuideTests {
    @Test func `a stream is created with a host and a port`() async throws {
        let server = try SocketServer.echo()
        let sessionManager = ClientCore.SessionManager(configuration: .default)
        for stream in [
            ClientCore.stream(withHostName: "localhost", port: Int(server.port)),
            sessionManager.stream(withHostName: "localhost", port: Int(server.port)),
        ] {
            let text: String? = await withCheckedContinuation { continuation in
                stream.write("ping\n".data(using: .utf8)!, timeout: 10) { error in
                    if let error = error { print("not sent: \(error)") }
                }
                stream.readData(ofMinLength: 5, maxLength: 1024, timeout: 10) { data, _, _ in
                    continuation.resume(returning: data.flatMap { String(data: $0, encoding: .utf8) })
                }
            }
            #expect(text == "ping\n")
            stream.cancel()
        }
    }
}
