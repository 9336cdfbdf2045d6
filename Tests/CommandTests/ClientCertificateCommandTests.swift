internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// Credential files with client certificates, from the built service to a server that demands a certificate.
@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .enabled(if: TestAuthority.isAvailable, "openssl is not installed"),
    .enabled(
        if: access(ResolverFiles.systemAuthorities, R_OK) == 0,
        "there is no \(ResolverFiles.systemAuthorities)"
    ),
    .timeLimit(.minutes(5))
)
struct ClientCertificateCommandTests {
    private let directory = try! ScratchDirectory()
    private let authority = try! TestAuthority.shared()

    /// Starts nginx, which writes the subject of each client's certificate to the log.
    private func server(log: String, in scratch: ScratchDirectory) async throws -> Nginx {
        let issued = try authority.server("demanding.command", for: "IP:127.0.0.1")
        return try await Nginx(in: scratch) { port in
            """
            log_format client "$ssl_client_s_dn";
            server {
                listen 127.0.0.1:\(port) ssl; keepalive_timeout 60;
                ssl_certificate \(issued.chain); ssl_certificate_key \(issued.key);
                ssl_client_certificate \(authority.root); ssl_verify_client on; ssl_verify_depth 3;
                access_log "\(log)" client;
                location / { return 201; }
            }
            """
        }
    }

    private func write(_ contents: Data, to name: String, mode: mode_t) throws {
        let path = try directory.write(Array(contents), to: "credentials/.new")
        try #require(chmod(path, mode) == 0)
        // The file is replaced at once, so that the service never reads a part of it.
        try #require(rename(path, directory.file("credentials/\(name)")) == 0)
    }

    private func install(_ issued: TestAuthority.Issued) throws {
        let certificate = try Data(contentsOf: URL(fileURLWithPath: issued.chain))
        try write(certificate, to: "client.pem", mode: 0o644)
        try write(try Data(contentsOf: URL(fileURLWithPath: issued.key)), to: "client.key", mode: 0o600)
    }

    @Test func `each attempt uses the certificate that the credential file names at that time`() async throws
    {
        let scratch = try ScratchDirectory()
        let log = scratch.file("clients")
        let nginx = try await server(log: log, in: scratch)
        let url = nginx.url.replacingOccurrences(of: "http://", with: "https://")
        mkdir(directory.file("credentials"), 0o700)
        try install(try authority.client("me"))
        let text = "type: certificate\norigins: \(url)\ncertificate: client.pem\nkey: client.key\n"
        try write(Data(text.utf8), to: "client", mode: 0o600)
        let service = try await RunningService(
            in: directory,
            resolvingBy: try ResolverFiles(authorities: authority.root),
            options: ["--credentials", directory.file("credentials")]
        )
        let refused = try await service.run("send", url, "-d", "1")
        #expect(refused.errors.first?.hasPrefix("dead: HTTP 400") == true, "\(refused.errors)")
        let send = ["send", url, "-d", "1", "--credential", "client"]
        #expect(try await service.run(send).errors == ["delivered: HTTP 201"])
        try install(try authority.client("you"))
        #expect(try await service.run(send).errors == ["delivered: HTTP 201"])
        try await until(changesIn: scratch.path) {
            // The first refusal of a lane is confirmed.
            let lines = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n")
            return lines.map(String.init) == ["-", "-", "CN=me", "CN=you"]
        }
    }
}
