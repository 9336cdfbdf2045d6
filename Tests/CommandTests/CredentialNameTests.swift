internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// Credentials and names whose addresses an attacker controls. The origin of a credential is a name, and a client of
/// the control socket may own other names that resolve to the same server, or change what a name resolves to.
@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .timeLimit(.minutes(5))
)
struct CredentialNameTests {
    private let directory = try! ScratchDirectory()
    private let testbed: VethTestbed
    private let names: ScriptedNameServer

    init() throws {
        testbed = try VethTestbed()
        names = try ScriptedNameServer(in: testbed.far)
    }

    private func service(origin: String) async throws -> RunningService {
        mkdir(directory.file("credentials"), 0o700)
        let text = "type: bearer\norigins: \(origin)\nvalue: hush-hush\n"
        let path = try directory.write(Array(text.utf8), to: "credentials/api")
        try #require(chmod(path, 0o600) == 0)
        return try await RunningService(
            in: directory,
            namespace: testbed.near,
            resolvingBy: try ResolverFiles(),
            options: ["--credentials", directory.file("credentials")]
        )
    }

    @Test func `another name of the same server does not get the credential, before or after it changes`()
        async throws
    {
        let server = try ScriptedServer(address: VethTestbed.farAddress, in: testbed.far)
        names.set("api.example", VethTestbed.farAddress)
        names.set("evil.example", VethTestbed.farAddress)
        let service = try await service(origin: "http://api.example:\(server.port)")
        let evil = "http://evil.example:\(server.port)/"
        let first = try await service.keep(evil, "-d", "1", "--credential", "api")
        let good = try await service.keep("http://api.example:\(server.port)/", "--credential", "api")
        #expect(try await service.end(of: good)["state"] as? String == "delivered")
        // The service has a connection to the server now, which a request to the same address could reuse.
        names.set("evil.example", "192.0.2.200", VethTestbed.farAddress)
        let second = try await service.keep(evil, "-d", "2", "--credential", "api")
        for id in [first, second] {
            let held = try await service.request(id) { $0["state"] as? String == "held" }
            let reason = held["reason"] as? String
            let words = "accepted: http://api.example:\(server.port)"
            #expect(reason?.contains(words) == true, "\(reason ?? "")")
        }
        #expect(server.requests.map { $0.values(of: "Authorization") } == [["Bearer hush-hush"]])
    }

    @Test(.enabled(if: TestAuthority.isAvailable, "openssl is not installed"))
    func `a server to which the credential's name points later gets nothing without the name's certificate`()
        async throws
    {
        let issued = try TestAuthority.shared().server("api.example")
        let port = "44300"
        let attacker = try Subprocess(
            "/usr/bin/openssl",
            [
                "s_server", "-www", "-accept", "\(VethTestbed.farAddress):\(port)", "-key", issued.key,
                "-cert", issued.chain,
            ],
            in: testbed.far
        )
        defer { attacker.signal(SIGKILL) }
        try await attacker.output.wait { $0.contains { $0.hasPrefix("ACCEPT") } }
        names.set("api.example", VethTestbed.farAddress)
        let service = try await service(origin: "https://api.example:\(port)")
        let id = try await service.keep("https://api.example:\(port)/", "-d", "1", "--credential", "api")
        try await service.request(id) { ($0["reason"] as? String)?.contains("certificate") == true }
        // The handshake failed, so nothing of the request was sent.
        #expect(try await service.request(id)["state"] as? String != "delivered")
    }
}
