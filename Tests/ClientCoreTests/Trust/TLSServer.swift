internal import ClientCore
internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// nginx with one virtual host per kind of certificate, selected by name. All names resolve to loopback.
final class TLSServer: Sendable {
    let authority: TestAuthority
    let engine: TransferEngine
    private let nginx: Nginx

    /// The TLS version that a server supports.
    enum Version: String, CaseIterable {
        case tls12 = "TLSv1.2"
        case tls13 = "TLSv1.3"
    }

    private static let old = Task { try await TLSServer(.tls12) }
    private static let new = Task { try await TLSServer(.tls13) }

    /// Returns the server that all tests of this process share.
    static func shared(_ version: Version = .tls13) async throws -> TLSServer {
        try await version == .tls12 ? old.value : new.value
    }

    /// Returns the URL of a virtual host without a trailing slash, for example `https://valid.test:PORT`.
    func url(_ host: String) -> String { nginx.url.replacing("http://127.0.0.1", with: "https://\(host)") }

    private init(_ version: Version) async throws {
        let authority = try TestAuthority()
        let hosts = try Self.hosts(authority)
        nginx = try await Nginx(in: try ScratchDirectory()) { port in
            """
            add_header Connection-Number $connection always; add_header Protocol $ssl_protocol always;
            ssl_protocols \(version.rawValue);
            \(hosts.map { $0.block(port) }.joined(separator: "\n"))
            """
        }
        self.authority = authority
        engine = try TransferEngine.withLoopbackNames()
    }

    /// Returns a new session, which does not share connections with earlier sessions.
    func session(_ policies: [String: ServerTrustPolicy]) -> SessionManager {
        session(ServerTrustPolicyManager(policies: policies))
    }

    func session(_ manager: ServerTrustPolicyManager?) -> SessionManager {
        SessionManager(engine: engine, serverTrustPolicyManager: manager)
    }

    func certificate(_ name: String) throws -> Certificate {
        try Certificate(contentsOf: authority.url("\(name).pem"))
    }

    func identity(_ issued: TestAuthority.Issued) throws -> ClientIdentity {
        try ClientIdentity(
            certificatesAt: URL(fileURLWithPath: issued.chain),
            privateKeyAt: URL(fileURLWithPath: issued.key)
        )
    }
}

extension TLSServer {
    /// A virtual host.
    private struct Host {
        let name: String
        let issued: TestAuthority.Issued
        var more = ""

        func block(_ port: UInt16) -> String {
            """
            server {
                listen 127.0.0.1:\(port) ssl; server_name \(name);
                ssl_certificate \(issued.chain); ssl_certificate_key \(issued.key);
                location / { return 200 "$ssl_client_s_dn"; default_type text/plain; }
                location /to/valid { return 302 https://valid.test:\(port)/; }
                location /to/plain { return 302 http://localhost:\(port)/; }
                location /to/wrong { return 302 https://wrong.test:\(port)/; }
                \(more)
            }
            """
        }
    }

    private static func hosts(_ authority: TestAuthority) throws -> [Host] {
        let revoked = try authority.server("revoked.test")
        try authority.revoke(revoked)
        _ = try authority.revocationList("list.pem")
        _ = try authority.revocationList(
            "old.pem",
            "-crl_lastupdate 20200101000000Z -crl_nextupdate 20200201000000Z"
        )
        try authority.openssl("openssl ca -config openssl.cnf -name root -gencrl -out foreign.pem")
        let valid = try authority.server(
            "valid.test",
            for: "DNS:valid.test,DNS:*.wild.test,DNS:localhost,IP:127.0.0.1"
        )
        return try [
            Host(name: "valid.test", issued: valid),
            Host(name: "*.wild.test", issued: valid),
            Host(name: "revoked.test", issued: revoked),
            Host(
                name: "expired.test",
                issued: try authority.server("expired.test", validity: ("20200101000000Z", "20210101000000Z"))
            ),
            Host(
                name: "future.test",
                issued: try authority.server("future.test", validity: ("20900101000000Z", "20910101000000Z"))
            ),
            Host(name: "wrong.test", issued: try authority.server("wrong.test", for: "DNS:right.test")),
            // The server sends this certificate without the intermediate that has signed it.
            Host(name: "alone.test", issued: try authority.server("alone.test").alone),
            Host(name: "self.test", issued: try authority.selfSigned("self.test")),
            stapled("good.test", authority, isRevoked: false),
            stapled("bad.test", authority, isRevoked: true),
            Host(
                name: "client.test",
                issued: try authority.server("client.test"),
                more:
                    "ssl_client_certificate \(authority.root); ssl_verify_client on; ssl_verify_depth 3;"
            ),
        ]
    }

    private static func stapled(_ name: String, _ authority: TestAuthority, isRevoked: Bool) throws -> Host {
        let issued = try authority.server(name)
        if isRevoked { try authority.revoke(issued) }
        let status = try authority.status(of: issued)
        return Host(name: name, issued: issued, more: "ssl_stapling on; ssl_stapling_file \(status);")
    }
}
