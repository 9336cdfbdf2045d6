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

    /// The directory of the queue: the value of `NETWATCH_STATE_DIR`, or else `STATE_DIRECTORY` if the service manager
    /// sets it. Otherwise `/var/lib/netwatch` for root, and `netwatch` in the XDG state directory for other users.
    package var stateDirectory: String {
        if let namedStateDirectory { return namedStateDirectory }
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
        if let path = value(Self.socketVariable) { return path }
        if let directory = value("RUNTIME_DIRECTORY") { return first(directory) + "/netwatch.sock" }
        guard !isRoot, let directory = value("XDG_RUNTIME_DIR") else { return Self.systemSocket }
        return directory + "/netwatch/netwatch.sock"
    }

    /// Whether ``socket`` is that of the system service only because this user has no XDG runtime directory.
    package var lacksRuntimeDirectory: Bool {
        let variables = [Self.socketVariable, "RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"]
        return !isRoot && variables.allSatisfy { value($0) == nil }
    }

    /// The socket that commands connect to: ``socket`` if the file exists or `NETWATCH_SOCKET` is set, otherwise the
    /// socket of the system service.
    package var socketForCommands: String {
        let own = socket
        return isSocketNamed || access(own, F_OK) == 0 ? own : Self.systemSocket
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
            path: path ?? value(Self.configurationVariable),
            default: managed ?? ConfigurationFiles.systemFile,
            environment: environment
        )
    }

    /// The directory of the credential files: the value of `NETWATCH_CREDENTIALS`, or else `CREDENTIALS_DIRECTORY`, which
    /// the service manager sets; `nil` if neither is set.
    package var credentialsDirectory: String? {
        value(Self.credentialsVariable) ?? value("CREDENTIALS_DIRECTORY")
    }

    /// The file of encryption keys: the value of `NETWATCH_ENCRYPTION_KEY`, or else the credential
    /// ``CredentialDirectory/queueKeyName``; `nil` if there is none.
    package var encryptionKeyFile: String? {
        if let namedEncryptionKeyFile { return namedEncryptionKeyFile }
        guard let path = credentialsDirectory.map({ "\($0)/\(CredentialDirectory.queueKeyName)" }) else {
            return nil
        }
        // A file that exists but cannot be read is an error, not a queue without encryption.
        return access(path, F_OK) == 0 || errno != ENOENT ? path : nil
    }

    /// Whether `NETWATCH_SOCKET` sets the path of the socket.
    package var isSocketNamed: Bool { value(Self.socketVariable) != nil }

    /// The value of `NETWATCH_STATE_DIR`; `nil` if it is not set.
    package var namedStateDirectory: String? { value(Self.stateDirectoryVariable) }

    /// The value of `NETWATCH_ENCRYPTION_KEY`, see ``fault``; `nil` if it is not set.
    package var namedEncryptionKeyFile: String? { value(Self.encryptionKeyVariable) }

    /// The fault of a variable; `nil` if there is none.
    ///
    /// A value that is not an absolute path may be a key. A message about a file that does not exist would contain it.
    package var fault: String? {
        guard let file = namedEncryptionKeyFile, !file.hasPrefix("/") else { return nil }
        return "the value of `\(Self.encryptionKeyVariable)` must be the absolute path of a file with keys"
    }

    /// The variables of the environment that look as if they were netwatch's, but have no effect. In the order of their
    /// names.
    package var unusedVariables: [UnusedVariable] { UnusedVariable.all(in: environment) }

    /// The directory that commands open when no service runs: ``stateDirectory``, or else `/var/lib/netwatch`, unless
    /// `NETWATCH_STATE_DIR` names the directory. `nil` if neither exists. If this user may not search the parent
    /// directory (`EACCES`), the directory counts as existing.
    package var existingStateDirectory: String? {
        let others = namedStateDirectory == nil ? [Self.systemState] : []
        return ([stateDirectory] + others).first { access($0, F_OK) == 0 || errno == EACCES }
    }

    private static let stateDirectoryVariable = "NETWATCH_STATE_DIR"
    private static let socketVariable = "NETWATCH_SOCKET"
    private static let configurationVariable = "NETWATCH_CONFIG"
    private static let credentialsVariable = "NETWATCH_CREDENTIALS"
    private static let encryptionKeyVariable = "NETWATCH_ENCRYPTION_KEY"

    /// The environment variables that set paths.
    static let variables = [
        stateDirectoryVariable, socketVariable, configurationVariable, credentialsVariable,
        encryptionKeyVariable,
    ]

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
