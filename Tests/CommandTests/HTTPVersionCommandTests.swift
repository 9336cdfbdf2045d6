internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// Servers whose responses are valid in HTTP/1.1, but not in HTTP/2.
@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .enabled(if: TestAuthority.isAvailable, "openssl is not installed"),
    .enabled(
        if: access(ResolverFiles.systemAuthorities, R_OK) == 0,
        "there is no \(ResolverFiles.systemAuthorities)"
    ),
    .timeLimit(.minutes(5))
)
struct HTTPVersionCommandTests {
    private static let reason = "the server violates HTTP/2, the next request uses HTTP/1.1: "

    private func resolving() throws -> ResolverFiles {
        try ResolverFiles(authorities: try HostileHTTP2Server.root)
    }

    @Test func `an at-most-once request is held with the reason, or delivered over HTTP/1.1`() async throws {
        let service = try await RunningService(in: try ScratchDirectory(), resolvingBy: try resolving())
        let send = ["send", "-X", "POST", "--at-most-once", "--id"]
        let server = try HostileHTTP2Server("http-1.1-upgrade")
        let held = try await service.run(send + ["held", server.url])
        #expect(held.ending == .exited(0), "\(held.errors)")
        #expect(held.errors.first?.hasPrefix("held (ambiguous): \(Self.reason)") == true, "\(held.errors)")
        let shown = try await service.run("queue", "show", "held").output
        #expect(shown.contains { $0.hasPrefix("state     held (ambiguous): \(Self.reason)") }, "\(shown)")
        // The service knows nothing about this server.
        let other = try HostileHTTP2Server("http-1.1-upgrade")
        let sent = try await service.run(send + ["sent", other.url, "--http-version", "1.1"])
        #expect(sent.errors == ["delivered: HTTP 200"], "\(sent.errors)")
        let details = try await service.run("queue", "show", "sent").output
        #expect(details.contains("protocol  HTTP/1.1"), "\(details)")
    }

    @Test func `a direct request fails, or uses HTTP/1.1`() async throws {
        let server = try HostileHTTP2Server("http-1.1-upgrade")
        func send(_ arguments: String...) async throws -> Subprocess.Outcome {
            try await Command.start(
                ["send", "--queue", "never", server.url] + arguments,
                resolvingBy: try resolving()
            ).outcome()
        }
        let failed = try await send()
        #expect(failed.ending == .exited(2), "\(failed.errors)")
        #expect(failed.errors.first?.contains("the server violates HTTP/2") == true, "\(failed.errors)")
        #expect(failed.errors.last?.contains("`--http-version 1.1`") == true, "\(failed.errors)")
        let sent = try await send("--http-version", "1.1")
        #expect(sent.ending == .exited(0) && sent.errors == ["delivered: HTTP 200"], "\(sent.errors)")
    }
}
