internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchService

/// A user without an account. In its name, curl(1) connects to a control socket. Only root can become another user.
struct OtherUser {
    static let isAvailable = OtherUsers.areAvailable && access("/usr/bin/curl", X_OK) == 0
    static let obstacle: Comment = "becoming another user needs root and curl"

    let uid: UInt32
    var gid: UInt32 = 60_001
    var groups: [UInt32] = []

    /// Sends a request over a socket.
    ///
    /// - Parameters:
    ///   - target: The path with its query.
    ///   - options: Further arguments of curl.
    /// - Returns: The response; its status is 0 if there is none.
    func curl(_ socket: String, _ target: String, _ options: String...) async throws -> RouteResponse {
        let outcome = try await start(socket, target, ["-w", "\n%{http_code}"] + options).outcome()
        let status = try #require(outcome.output.last.flatMap { UInt($0) }, "\(outcome.errors)")
        let body = Data(outcome.output.dropLast().joined(separator: "\n").utf8)
        let object = try? JSONSerialization.jsonObject(with: body) as? [String: Any]
        return RouteResponse(status: status, members: object ?? [:])
    }

    /// Starts to send a request over a socket.
    ///
    /// - Parameter input: The standard input of curl. Default: none.
    func start(
        _ socket: String,
        _ target: String,
        _ options: [String],
        input: CInt? = nil
    ) throws -> Subprocess {
        let identity = [
            "--reuid=\(uid)", "--regid=\(gid)",
            groups.isEmpty ? "--clear-groups" : "--groups=\(groups.map(String.init).joined(separator: ","))",
        ]
        let command = ["/usr/bin/curl", "-sS", "--unix-socket", socket, "http://netwatch\(target)"]
        return try Subprocess("/usr/bin/setpriv", identity + command + options, input: input)
    }
}

extension SocketPermissions {
    /// Permissions that the kernel refuses, because their list is longer than 64 KiB. So every user can connect.
    static let refused = SocketPermissions(
        groups: (100_000..<108_200).map { SystemGroup(name: "\($0)", id: $0) }
    )
}

extension ScratchDirectory {
    /// Lets every user enter the directory, so that other users can connect to a socket in it.
    func admitEveryone() throws { try #require(chmod(path, 0o755) == 0) }
}
