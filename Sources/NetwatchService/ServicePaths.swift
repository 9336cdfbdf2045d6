internal import Foundation
internal import Glibc

/// The default paths of the service and of the commands that look for it.
package struct ServicePaths: Sendable {
    private let environment: [String: String]
    private let isRoot: Bool

    package static let isStartedByRoot = geteuid() == 0

    /// - Parameters:
    ///   - environment: The environment of the process.
    ///   - isRoot: Whether the effective user is root. Default: whether it was root at the first use of this type,
    ///     because a command of root may become the owner of a queue.
    package init(
        environment: [String: String] = ProcessInfo.processInfo.environment,
        isRoot: Bool = Self.isStartedByRoot
    ) {
        self.environment = environment
        self.isRoot = isRoot
    }

    /// The directory of the queue: `STATE_DIRECTORY` if the service manager sets it. Otherwise `/var/lib/netwatch` for
    /// root, and `netwatch` in the XDG state directory for other users.
    package var stateDirectory: String {
        if let directory = value("STATE_DIRECTORY") { return first(directory) }
        if isRoot { return Self.systemState }
        return (value("XDG_STATE_HOME") ?? home + "/.local/state") + "/netwatch"
    }

    /// The path of the control socket, from the first of these that applies:
    ///
    /// 1. `NETWATCH_SOCKET`, the path itself
    /// 2. `netwatch.sock` in `RUNTIME_DIRECTORY`, which the service manager sets
    /// 3. `netwatch/netwatch.sock` in the XDG runtime directory, except for root
    /// 4. `/run/netwatch/netwatch.sock`
    package var socket: String {
        if let path = value("NETWATCH_SOCKET") { return path }
        if let directory = value("RUNTIME_DIRECTORY") { return first(directory) + "/netwatch.sock" }
        guard !isRoot, let directory = value("XDG_RUNTIME_DIR") else { return Self.systemSocket }
        return directory + "/netwatch/netwatch.sock"
    }

    /// Whether ``socket`` is that of the system service only because this user has no XDG runtime directory.
    package var lacksRuntimeDirectory: Bool {
        let variables = ["NETWATCH_SOCKET", "RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"]
        return !isRoot && variables.allSatisfy { value($0) == nil }
    }

    /// The socket that commands connect to: ``socket`` if the file exists or `NETWATCH_SOCKET` is set, otherwise the
    /// socket of the system service.
    package var socketForCommands: String {
        let own = socket
        return value("NETWATCH_SOCKET") != nil || access(own, F_OK) == 0 ? own : Self.systemSocket
    }

    /// Returns the configuration files. The main file is the first of these that applies; only the first two must exist:
    ///
    /// 1. the file that the user names
    /// 2. `NETWATCH_CONFIG`
    /// 3. `netwatch.toml` in `CONFIGURATION_DIRECTORY`, which the service manager sets
    /// 4. `/etc/netwatch/netwatch.toml`
    package func configurationFiles(named path: String?) -> ConfigurationFiles {
        let managed = value("CONFIGURATION_DIRECTORY").map { first($0) + "/netwatch.toml" }
        return ConfigurationFiles(
            path: path ?? value("NETWATCH_CONFIG"),
            default: managed ?? ConfigurationFiles.systemFile,
            environment: environment
        )
    }

    /// The directory of the credential files: `CREDENTIALS_DIRECTORY`, which the service manager sets; `nil` if it is
    /// not set.
    package var credentialsDirectory: String? { value("CREDENTIALS_DIRECTORY") }

    /// The file of encryption keys: the credential ``CredentialDirectory/queueKeyName``; `nil` if there is none.
    package var encryptionKeyFile: String? {
        guard let path = credentialsDirectory.map({ "\($0)/\(CredentialDirectory.queueKeyName)" }) else {
            return nil
        }
        // A file that exists but cannot be read is an error, not a queue without encryption.
        return access(path, F_OK) == 0 || errno != ENOENT ? path : nil
    }

    /// Whether `NETWATCH_SOCKET` sets the path of the socket.
    package var isSocketNamed: Bool { value("NETWATCH_SOCKET") != nil }

    /// The directory that commands open when no service runs: ``stateDirectory``, or else `/var/lib/netwatch`. `nil` if
    /// neither exists. If this user may not search the parent directory (`EACCES`), the directory counts as existing.
    package var existingStateDirectory: String? {
        [stateDirectory, Self.systemState].first { access($0, F_OK) == 0 || errno == EACCES }
    }

    /// The directory of the queue of the system's service.
    package static let systemState = "/var/lib/netwatch"
    /// The control socket of the system's service.
    package static let systemSocket = "/run/netwatch/netwatch.sock"

    private var home: String {
        value("HOME") ?? "/"
    }

    /// Returns the value of an environment variable; `nil` if it is unset or empty. The XDG specification treats empty
    /// as unset.
    private func value(_ name: String) -> String? {
        environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Returns the first of several directories, which systemd separates with colons.
    private func first(_ list: String) -> String {
        String(list.prefix { $0 != ":" })
    }
}
