internal import Foundation
internal import Glibc
package import NetwatchEventLoop

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

/// An environment variable whose name begins with `NETWATCH_`, but which nothing reads.
package struct UnusedVariable: Hashable, Sendable, CustomStringConvertible {
    private static let prefix = "NETWATCH_"

    let name: String
    /// The variable with the most similar name; `nil` if none is similar.
    let similar: String?

    package var description: String {
        "the environment variable `\(name)` has no effect" + (similar.map { "; did you mean `\($0)`?" } ?? "")
    }

    /// Returns the unused variables of an environment, in the order of their names. An empty variable counts as unset.
    ///
    /// The programs of hooks inherit the variables of their alert, and may call `netwatch`. Kubernetes sets variables for
    /// each of its services, also for one that is called `netwatch`.
    static func all(in environment: [String: String]) -> [UnusedVariable] {
        let names = environment.filter { $0.key.hasPrefix(prefix) && !$0.value.isEmpty }.keys
        let used = Set(settable + [BootID.variable] + HookMessage.Variable.allCases.map(\.rawValue))
        return names.filter { !used.contains($0) && !isServiceLink($0) }.sorted().map { name in
            UnusedVariable(name: name, similar: similar(to: name))
        }
    }

    /// The variables that a user sets.
    private static let settable = ServicePaths.variables + SettingTable.settings.map(\.variable)

    /// Returns the variable that a name may stand for: the one of a key without its table, as the name of an option is,
    /// or else the one with the most similar name.
    private static func similar(to name: String) -> String? {
        let word = name.dropFirst(prefix.count)
        if let variable = settable.first(where: { $0.hasSuffix("_\(word)") }) { return variable }
        let names = settable.map { String($0.dropFirst(prefix.count)) }
        let begun = names.filter { word.hasPrefix($0) }.max { $0.count < $1.count }
        return (begun ?? NameSuggestion.name(for: String(word), among: names)).map { prefix + $0 }
    }

    /// Whether Kubernetes may have set a variable: `NETWATCH_SERVICE_HOST`, `NETWATCH_SERVICE_PORT_HTTP`,
    /// `NETWATCH_PORT`, `NETWATCH_PORT_80_TCP_ADDR`, and the same with a longer name of the service.
    private static func isServiceLink(_ name: String) -> Bool {
        let endings = ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT"]
        if endings.contains(where: { name.hasSuffix($0) }) { return true }
        let words = name.split(separator: "_")
        guard let port = words.lastIndex(of: "PORT"), port + 1 < words.count else { return false }
        if words[port - 1] == "SERVICE" { return true }
        return isNumberedPort(words)
    }

    /// Whether the words of a name contain `PORT`, a number and a protocol in succession.
    private static func isNumberedPort(_ words: [Substring]) -> Bool {
        words.indices.dropLast(2).contains { index in
            words[index] == "PORT" && UInt16(words[index + 1]) != nil
                && ["TCP", "UDP", "SCTP"].contains(words[index + 2])
        }
    }
}

/// The process that listens on a control socket.
package enum ServiceProcess {
    /// Returns the id of the process that listens on a unix socket, as the kernel recorded it (`SO_PEERCRED`). Sends
    /// nothing and does not block.
    ///
    /// - Throws: ``SystemError`` of `connect`:
    ///   - `ENOENT` or `ECONNREFUSED`: no process listens.
    ///   - `EACCES`: this user may not connect.
    ///   - `EAGAIN`: a process listens, but its backlog is full.
    package static func id(listeningAt path: [UInt8]) throws(SystemError) -> Int32 {
        try credentials(listeningAt: path).pid
    }

    /// Returns the credentials of the process that listens on a unix socket, in the same way. For a socket of the
    /// service manager, they are those of the service manager.
    ///
    /// - Throws: ``SystemError`` of `connect`; see ``id(listeningAt:)``.
    package static func credentials(listeningAt path: [UInt8]) throws(SystemError) -> PeerCredentials {
        guard let address = UnixSocketAddress(pathBytes: path) else {
            throw SystemError(call: "connect", errno: ENAMETOOLONG)
        }
        let socket = try unixSocket(.stream)
        let descriptor = socket.rawValue
        try systemCall("connect") { address.withSockaddr { connect(descriptor, $0, $1) } }
        return try PeerCredentials(ofSocket: descriptor)
    }
}
