internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// What one user can use up of the built service, and what is left for another user and for root.
@Suite(.enabled(if: OtherUsers.areAvailable, "becoming another user needs root"), .timeLimit(.minutes(5)))
struct UserShareServiceTests {
    private let directory = try! ScratchDirectory()
    private static let (user, other): (UInt32, UInt32) = (60_001, 60_002)
    /// Larger than the bodies that are never uploads.
    private static let large = String(repeating: "x", count: 40_000)

    /// Starts a service whose users have a class of access.
    private func service(access: String) async throws -> RunningService {
        try #require(chmod(directory.path, 0o755) == 0)
        let text = "[access]\n\(access)-groups = [\"daemon\"]\n"
        let file = try directory.write(Array(text.utf8), to: "netwatch.toml")
        let service = try await RunningService(in: directory, options: ["--config", file])
        try await service.pause()
        return service
    }

    /// Connects as a user of the class of access, or as root.
    private static func client(_ path: String, _ user: UInt32?) throws -> RawClient {
        // The group `daemon` has this id on every Debian and Ubuntu machine.
        try RawClient(path, as: user, inGroup: 1)
    }

    /// Expects that another user and root can send a large body, or the user a small one.
    private static func expectServed(_ path: String) throws {
        for (user, body) in [(user, "x"), (other, large), (nil, large)] {
            let body = #"{"url":"http://127.0.0.1:1/","method":"POST","queue":"always","body":"\#(body)"}"#
            let response = try client(path, user).enqueue(body)
            #expect(response.status == 202, "\(String(describing: user)): \(response)")
        }
    }

    @Test(arguments: ["read", "submit"])
    func `a user with 64 connections gets no other, but another user and root do`(access: String) async throws
    {
        let service = try await service(access: access)
        let path = service.socket
        try await offPool {
            let clients = try (0...64).map { _ in try Self.client(path, Self.user) }
            let refused = try clients[64].response()
            #expect(refused.status == 429 && refused.body.contains(#""code":"too_many_connections""#))
            for client in try [clients[0], Self.client(path, Self.other), Self.client(path, nil)] {
                #expect(try client.request("GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n").status == 200)
            }
        }
        withExtendedLifetime(service) {}
    }

    @Test func `64 abandoned uploads of a user leave room for those of others`() async throws {
        let service = try await service(access: "submit")
        let path = service.socket
        try await offPool {
            func upload(_ id: String, _ user: UInt32?) throws -> RawResponse {
                let head =
                    "PATCH /v1/bodies/\(id)?offset=0 HTTP/1.1\r\nHost: x\r\nContent-Length: 40000\r\n\r\n"
                return try Self.client(path, user).request(head + Self.large)
            }
            let responses = try (0..<64).map { try upload("abandoned-\($0)", Self.user) }
            // On a slow machine, the first uploads are stalled before the last one begins, and give way to it.
            let refused = responses.filter { $0.body.contains(#""code":"quota_exceeded""#) }
            #expect(refused.count > 0 && responses.prefix(16).allSatisfy { $0.status == 200 })
            #expect(responses.count { $0.status == 200 } + refused.count == 64)
            for user in [Self.other, nil] { #expect(try upload("body-of-\(user ?? 0)", user).status == 200) }
            try Self.expectServed(path)
        }
        withExtendedLifetime(service) {}
    }
}
