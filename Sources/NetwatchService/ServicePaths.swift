internal import Foundation
internal import Glibc

/// The paths that the service uses, and where commands look for them.
package struct ServicePaths: Sendable {
    private let environment: [String: String]
    private let isRoot: Bool

    /// - Parameters:
    ///   - environment: The environment of the process.
    ///   - isRoot: Whether the effective user is root.
    package init(
        environment: [String: String] = ProcessInfo.processInfo.environment,
        isRoot: Bool = geteuid() == 0
    ) {
        self.environment = environment
        self.isRoot = isRoot
    }

    /// The directory of the queue: `STATE_DIRECTORY` of the service manager, else `/var/lib/netwatch` for root and
    /// `netwatch` in the XDG state directory for other users.
    package var stateDirectory: String {
        if let directory = value("STATE_DIRECTORY") { return first(directory) }
        if isRoot { return Self.systemState }
        return (value("XDG_STATE_HOME") ?? home + "/.local/state") + "/netwatch"
    }

    /// The control socket: `NETWATCH_SOCKET`, else in `RUNTIME_DIRECTORY` of the service manager, else in
    /// `/run/netwatch` for root and in the XDG runtime directory for other users.
    package var socket: String {
        if let path = value("NETWATCH_SOCKET") { return path }
        if let directory = value("RUNTIME_DIRECTORY") { return first(directory) + "/netwatch.sock" }
        guard !isRoot, let directory = value("XDG_RUNTIME_DIR") else { return Self.systemSocket }
        return directory + "/netwatch/netwatch.sock"
    }

    /// The socket that commands connect to: like ``socket``, but the system service's if the user's socket does not
    /// exist.
    package var socketForCommands: String {
        let own = socket
        return value("NETWATCH_SOCKET") != nil || access(own, F_OK) == 0 ? own : Self.systemSocket
    }

    /// Whether the environment names the service's socket.
    package var isSocketNamed: Bool { value("NETWATCH_SOCKET") != nil }

    /// The directory that commands read when no service runs: like ``stateDirectory``, but the system's if the user's
    /// does not exist. `nil` if neither exists.
    package var existingStateDirectory: String? {
        [stateDirectory, Self.systemState].first { access($0, F_OK) == 0 || errno == EACCES }
    }

    private static let systemState = "/var/lib/netwatch"
    private static let systemSocket = "/run/netwatch/netwatch.sock"

    private var home: String {
        value("HOME") ?? "/"
    }

    /// Returns a variable, or `nil` if it is empty: an empty XDG variable counts as unset.
    private func value(_ name: String) -> String? {
        environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Returns the first directory of a list, which systemd separates with colons.
    private func first(_ list: String) -> String {
        String(list.prefix { $0 != ":" })
    }
}
