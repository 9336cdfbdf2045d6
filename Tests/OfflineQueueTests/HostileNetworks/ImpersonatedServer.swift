internal import ClientCore
internal import Foundation
internal import NetwatchTestSupport

/// A server on HTTPS that presents its own certificate, or one that an impostor could present. It accepts every
/// request.
struct ImpersonatedServer {
    /// Whose certificate the server presents.
    enum Identity: CaseIterable {
        /// A captive portal's, which no authority has issued.
        case selfSigned
        /// Another server's, to which a name server points. A trusted authority has issued it, for another name.
        case anotherServer
        /// The server's own.
        case itself
    }

    private let authority: TestAuthority
    private let scratch: ScratchDirectory
    private let nginx: Nginx
    private let issued: [Identity: TestAuthority.Issued]

    init() async throws {
        let (authority, scratch) = (try TestAuthority(), try ScratchDirectory())
        (self.authority, self.scratch) = (authority, scratch)
        issued = [
            .selfSigned: try authority.selfSigned("portal"),
            .anotherServer: try authority.server("another", for: "DNS:another.example"),
            .itself: try authority.server("itself", for: "IP:127.0.0.1,DNS:localhost"),
        ]
        let (identity, log) = (scratch.file("identity"), scratch.file("credentials"))
        // With a variable in their paths, nginx reads the files at each handshake.
        nginx = try await Nginx(in: try ScratchDirectory()) { port in
            """
            log_format credential $http_authorization;
            map $server_port $identity { default "\(identity)"; }
            server {
                listen 127.0.0.1:\(port) ssl; ssl_session_cache off; ssl_session_tickets off;
                ssl_certificate $identity.chain; ssl_certificate_key $identity.key; keepalive_timeout 0;
                access_log "\(log)" credential;
                location / { return 201; }
            }
            """
        }
    }

    var url: String { nginx.url.replacingOccurrences(of: "http://", with: "https://") }

    /// The field `Authorization` of each request, `-` if it had none, in the order in which they ended.
    var credentials: [String] {
        get throws {
            let log = try String(contentsOfFile: scratch.file("credentials"), encoding: .utf8)
            return log.split(separator: "\n").map(String.init)
        }
    }

    /// Waits until ``credentials`` are these. nginx logs a request after it has sent the response.
    func hasLogged(_ credentials: [String]) async throws {
        try await until(changesIn: scratch.path) { try self.credentials == credentials }
    }

    /// Presents a certificate in all later handshakes.
    func present(_ identity: Identity) throws {
        let files = issued[identity]!
        for (file, name) in [(files.chain, "identity.chain"), (files.key, "identity.key")] {
            let path = try scratch.write(Array(Data(contentsOf: URL(fileURLWithPath: file))), to: name)
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
        }
    }

    /// Returns a session that trusts only the authority that issued the certificates.
    func session() throws -> SessionManager {
        let root = try Certificate(contentsOf: URL(fileURLWithPath: authority.root))
        let pins = ServerTrustPolicy.pinCertificates(
            certificates: [root],
            validateCertificateChain: true,
            validateHost: true
        )
        return SessionManager(
            engine: .shared,
            serverTrustPolicyManager: ServerTrustPolicyManager(policies: [
                "127.0.0.1": pins, "localhost": pins,
            ])
        )
    }
}
