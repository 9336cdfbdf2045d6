internal import ClientCore
internal import ClientTestProcess
internal import Foundation
internal import FoundationNetworking
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// Servers that are refused: their certificate is not trusted, or their TLS version is too old.
@Suite(
    .enabled(if: access("/usr/bin/openssl", X_OK) == 0, "openssl is not installed"),
    .timeLimit(.minutes(5))
)
struct TrustTests {
    /// Starts `openssl s_server` with a certificate that is not trusted.
    ///
    /// - Parameters:
    ///   - directory: The directory for the certificate.
    ///   - options: More arguments of openssl-s_server(1).
    /// - Returns: The server, which ends when the caller kills it, and its URL.
    private func startServer(
        in directory: ScratchDirectory,
        _ options: [String] = []
    ) async throws -> (server: Subprocess, url: String) {
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
                "s_server", "-accept", "127.0.0.1:0", "-www",
                "-key", directory.file("key"), "-cert", directory.file("certificate"),
            ] + options
        )
        do {
            try await server.output.wait { $0.contains { $0.hasPrefix("ACCEPT ") } }
            let line = try #require(server.output.values.first { $0.hasPrefix("ACCEPT ") })
            let port = try #require(line.split(separator: ":").last)
            return (server, "https://127.0.0.1:\(port)/")
        } catch {
            server.signal(SIGKILL)
            throw error
        }
    }

    @Test func `an untrusted server receives nothing, and the error has the reason`() async throws {
        let directory = try ScratchDirectory()
        let (server, url) = try await startServer(in: directory)
        defer { server.signal(SIGKILL) }
        let response = await SessionManager.default.request(url).response()
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

    /// In a separate process, which trusts the tests' root instead of the machine's authorities.
    @Test(.enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"))
    func `a session without trust policies does not leave https for http`() async throws {
        let server = try await TLSServer.shared()
        let files = try ResolverFiles(authorities: server.authority.root)
        func response(_ path: String) async throws -> String? {
            var options = ProcessOptions(url: server.url("127.0.0.1") + path, action: .send())
            options.hasTrustPolicies = false
            let argument = try ClientProcessOptions.process(options).argument
            let command = files.mounted([ClientTestProcess.path, argument])
            return try await Subprocess(command[0], Array(command.dropFirst())).outcome().output.first
        }
        #expect(try await response("/") == "response status 200")
        let refused = try await response("/to/plain") ?? ""
        #expect(refused.contains("redirect") && refused.contains("http://localhost"), "\(refused)")
        withExtendedLifetime(files) {}
    }

    /// In a separate process, because OpenSSL reads its configuration once.
    @Test func `TLS 1.1 is refused by default even if OpenSSL's configuration permits it`() async throws {
        let directory = try ScratchDirectory()
        let (server, url) = try await startServer(in: directory, ["-tls1_1", "-cipher", "ALL@SECLEVEL=0"])
        defer { server.signal(SIGKILL) }
        let configuration = """
            openssl_conf = settings
            [settings]
            ssl_conf = tls
            [tls]
            system_default = policy
            [policy]
            MinProtocol = TLSv1
            CipherString = DEFAULT@SECLEVEL=0
            """
        try directory.write(Array("\(configuration)\n".utf8), to: "openssl.cnf")
        let environment = ["OPENSSL_CONF": directory.file("openssl.cnf")]
        func response(_ minimum: TLSVersion?) async throws -> [String] {
            let action = ProcessOptions.Action.send(minimumTLSVersion: minimum?.rawValue)
            let options = ClientProcessOptions.process(ProcessOptions(url: url, action: action))
            return try await Subprocess(
                ClientTestProcess.path,
                [try options.argument],
                environment: environment
            ).outcome().output
        }
        #expect(try await response(.tls11) == ["response status 200", "done"])
        let refused = try await response(nil)
        #expect(refused.first?.contains("(curl 35, ") == true, "\(refused)")
    }
}
