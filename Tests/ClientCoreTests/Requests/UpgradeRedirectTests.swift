internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// Redirects from http to https on the same host, with the default ports of both, in a network namespace.
@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .enabled(if: TestAuthority.isAvailable, "openssl is not installed"),
    .timeLimit(.minutes(5))
)
struct UpgradeRedirectTests {
    @Test(arguments: [307, 308])
    func `a body is sent again over https to the same host without a permission`(status: Int) async throws {
        let namespace = try NetworkNamespace()
        let authority = try TestAuthority.shared()
        let certificate = try authority.server("upgrade.test", for: "IP:127.0.0.1")
        let secure = try await TLSTerminal(authority, certificate, port: 443, in: namespace)
        let plain = try ScriptedServer(port: 80, in: namespace) { request in
            .respond(status: status, headers: [.init("Location", "https://127.0.0.1\(request.target)")])
        }
        let pins = ServerTrustPolicy.pinCertificates(
            certificates: [try Certificate(contentsOf: authority.url("root.pem"))],
            validateCertificateChain: true,
            validateHost: true
        )
        let session = SessionManager(
            engine: try TransferEngine(networkNamespace: namespace.path),
            serverTrustPolicyManager: ServerTrustPolicyManager(policies: ["127.0.0.1": pins])
        )
        var request = try URLRequest(url: "http://127.0.0.1/new", method: .put)
        request.httpBody = Data("secret\n".utf8)
        let response = Recorder<DefaultDataResponse>()
        session.request(request).response(queue: .global()) { response.record($0) }
        try await secure.received("PUT /new HTTP/1.1")
        try await secure.received("secret")
        try secure.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        try await response.wait { !$0.isEmpty }
        #expect(response.values[0].response?.statusCode == 200, "\(response.values[0])")
        #expect(plain.requests.map { String(decoding: $0.body, as: UTF8.self) } == ["secret\n"])
    }
}
