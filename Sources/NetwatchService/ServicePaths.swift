internal import Foundation
internal import Glibc

/// Where the service keeps its things, and where the commands look for it.
package struct ServicePaths: Sendable {
    private let environment: [String: String]
    private let isRoot: Bool

    /// - Parameters:
    ///   - environment: The process's environment.
    ///   - isRoot: Whether the effective user is root.
    package init(
        environment: [String: String] = ProcessInfo.processInfo.environment,
        isRoot: Bool = geteuid() == 0
    ) {
        self.environment = environment
        self.isRoot = isRoot
    }

    /// The directory of the queue: `STATE_DIRECTORY` of the service manager; else `/var/lib/netwatch` for
    /// root and the XDG state directory for others.
    package var stateDirectory: String {
        if let directory = value("STATE_DIRECTORY") { return first(directory) }
        if isRoot { return Self.systemState }
        return (value("XDG_STATE_HOME") ?? home + "/.local/state") + "/netwatch"
    }

    /// The control socket: `NETWATCH_SOCKET`; else in `RUNTIME_DIRECTORY` of the service manager; else in
    /// `/run/netwatch` for root and in the XDG runtime directory for others.
    package var socket: String {
        if let path = value("NETWATCH_SOCKET") { return path }
        if let directory = value("RUNTIME_DIRECTORY") { return first(directory) + "/netwatch.sock" }
        guard !isRoot, let directory = value("XDG_RUNTIME_DIR") else { return Self.systemSocket }
        return directory + "/netwatch/netwatch.sock"
    }

    /// The socket a command talks to: like ``socket``, but the system's service if there is none of one's
    /// own.
    package var socketForCommands: String {
        let own = socket
        return value("NETWATCH_SOCKET") != nil || access(own, F_OK) == 0 ? own : Self.systemSocket
    }

    /// Whether the environment says which service is meant.
    package var isSocketNamed: Bool { value("NETWATCH_SOCKET") != nil }

    /// The directory that a command looks into when no service runs: like ``stateDirectory``, but the system's
    /// if there is none of one's own. `nil` when there is neither.
    package var existingStateDirectory: String? {
        [stateDirectory, Self.systemState].first { access($0, F_OK) == 0 || errno == EACCES }
    }

    private static let systemState = "/var/lib/netwatch"
    private static let systemSocket = "/run/netwatch/netwatch.sock"

    private var home: String {
        value("HOME") ?? "/"
    }

    /// A variable, unless it is empty: an empty XDG variable counts as unset.
    private func value(_ name: String) -> String? {
        environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// systemd separates several directories by colons.
    private func first(_ list: String) -> String {
        String(list.prefix { $0 != ":" })
    }
}
