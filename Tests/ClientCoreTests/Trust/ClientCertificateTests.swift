internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import Glibc
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// Servers that request a client certificate.
@Suite(.enabled(if: TestAuthority.isAvailable, "openssl is not installed"), .timeLimit(.minutes(5)))
struct ClientCertificateTests {
    private func session(_ server: TLSServer, _ identities: [String: ClientIdentity]) throws -> SessionManager
    {
        let pins = ServerTrustPolicy.pinCertificates(
            certificates: [try server.certificate("root")],
            validateCertificateChain: true,
            validateHost: true
        )
        let policies = ["client.test": pins, "valid.test": pins, "127.0.0.1": pins]
        return server.session(ServerTrustPolicyManager(policies: policies, clientIdentities: identities))
    }

    private func get(_ url: String, _ session: SessionManager) async -> DataResponse<String> {
        await session.request(url).responseString()
    }

    @Test(arguments: TLSServer.Version.allCases)
    func `a server that requests a client certificate receives it`(version: TLSServer.Version) async throws {
        let server = try await TLSServer.shared(version)
        let identity = try server.identity(try server.authority.client("me-\(version.rawValue)"))
        let session = try session(server, ["client.test": identity])
        let response = await get("\(server.url("client.test"))/", session)
        #expect(response.response?.statusCode == 200)
        #expect(response.result.value == "CN=me-\(version.rawValue)")
        // Other hosts do not receive the certificate.
        let other = await get("\(server.url("valid.test"))/", session)
        #expect(other.response?.statusCode == 200)
        #expect(other.result.value == "")
    }

    /// nginx completes the TLS handshake, and then rejects the client with an HTTP response.
    @Test(arguments: TLSServer.Version.allCases)
    func `nginx responds 400 without a certificate or with one of another authority`(
        version: TLSServer.Version
    ) async throws {
        let server = try await TLSServer.shared(version)
        let without = try session(server, [:])
        let missing = await get("\(server.url("client.test"))/", without)
        #expect(missing.response?.statusCode == 400)
        #expect(missing.result.value?.contains("No required SSL certificate was sent") == true)
        let stranger = try TestAuthority()
        let identity = try server.identity(try stranger.client("stranger.test"))
        let session = try session(server, ["client.test": identity])
        let refused = await get("\(server.url("client.test"))/", session)
        #expect(refused.response?.statusCode == 400)
        #expect(refused.result.value?.contains("The SSL certificate error") == true)
    }

    @Test(
        arguments: [
            ("-tls1_3", false, .clientCertificateRequired), ("-tls1_3", true, .clientCertificateRejected),
            ("-tls1_2", false, .secureConnectionFailed), ("-tls1_2", true, .clientCertificateRejected),
        ] as [(String, Bool, URLError.Code)]
    )
    func `a TLS alert about the client certificate is reported in the error`(
        version: String,
        hasIdentity: Bool,
        expected: URLError.Code
    ) async throws {
        let tls = try await TLSServer.shared()
        let authority = tls.authority
        let program = try Subprocess(
            "/usr/bin/openssl",
            [
                "s_server", "-accept", "127.0.0.1:0", "-www", version, "-Verify", "3",
                "-verify_return_error", "-CAfile", authority.root, "-key", authority.file("valid.test.key"),
                "-cert", authority.file("valid.test.pem"), "-cert_chain", authority.intermediate,
            ]
        )
        defer { program.signal(SIGKILL) }
        try await program.output.wait { $0.contains { $0.hasPrefix("ACCEPT ") } }
        let line = try #require(program.output.values.first { $0.hasPrefix("ACCEPT ") })
        let port = try #require(line.split(separator: ":").last)
        let stranger = try TestAuthority()
        let identity = try tls.identity(try stranger.client("stranger.test"))
        let session = try session(tls, hasIdentity ? ["127.0.0.1": identity] : [:])
        let response = await session.request("https://127.0.0.1:\(port)/").response()
        let error = try #require(response.error)
        #expect((error as? URLError)?.code == expected, "\(error)")
        #expect(error.transferFailure?.message.contains("alert") == true, "\(error)")
    }

    @Test func `a client certificate is not sent to a redirect's host`() async throws {
        let server = try await TLSServer.shared()
        let identity = try server.identity(try server.authority.client("traveller.test"))
        let session = try session(server, ["client.test": identity])
        let response = await get("\(server.url("client.test"))/to/valid", session)
        #expect(response.response?.url?.host == "valid.test")
        #expect(response.result.value == "")
    }
}
