internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// A server whose certificate is not trusted: `openssl s_server`.
@Suite(
    .enabled(if: access("/usr/bin/openssl", X_OK) == 0, "openssl is not installed"),
    .timeLimit(.minutes(5))
)
struct TrustTests {
    @Test func `an untrusted server receives nothing, and the error has the reason`() async throws {
        let directory = try ScratchDirectory()
        try shell(
            """
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 \
                -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 \
                -keyout \(directory.file("key")) -out \(directory.file("certificate"))
            """
        )
        let server = try Subprocess(
            "/usr/bin/openssl",
            [
                "s_server", "-accept", "127.0.0.1:0", "-www", "-naccept", "1",
                "-key", directory.file("key"), "-cert", directory.file("certificate"),
            ]
        )
        defer { server.signal(SIGKILL) }
        try await server.output.wait { $0.contains { $0.hasPrefix("ACCEPT ") } }
        let line = try #require(server.output.values.first { $0.hasPrefix("ACCEPT ") })
        let port = try #require(line.split(separator: ":").last)
        let response = await SessionManager.default.request("https://127.0.0.1:\(port)/").response()
        let error = try #require(response.error as? AFError)
        #expect(error.isServerTrustEvaluationError)
        #expect((error as any Error).transferFailure?.code == 60)
        #expect((error as any Error).transferFailure?.phase == .tls)
        #expect((error as any Error).transferFailure?.bytesSent == 0)
        #expect(response.response == nil)
    }

    @Test func `a server with an older TLS version is refused`() async throws {
        let server = try await TLSServer.shared(.tls12)
        let session = server.session(["self.test": .disableEvaluation])
        let url = server.url("self.test")
        #expect(await session.request(url).response().response?.statusCode == 200)
        session.requestOptions.minimumTLSVersion = .tls13
        let refused = await session.request(url).response()
        #expect((refused.error as? URLError)?.code == .secureConnectionFailed)
        let request = try URLRequest(url: url, method: .get)
        let permitted = await session.request(request.with(RequestOptions(minimumTLSVersion: .tls12)))
            .response()
        #expect(permitted.response?.statusCode == 200)
    }
}
