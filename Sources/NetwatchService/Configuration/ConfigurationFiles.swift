internal import Foundation
internal import Glibc
package import NetwatchEventLoop

/// The configuration of the service in TOML files: a main file, and the files `*.toml` in the directory
/// `<main file>.d`, in the order of their names. The environment variables of the keys replace their values.
package struct ConfigurationFiles: Sendable {
    /// The main file of the system's service.
    package static let systemFile = "/etc/netwatch/netwatch.toml"
    /// The maximum size of a file: 1 MiB.
    package static let longestFile = 1 << 20

    /// The path of the main file.
    package let path: String
    /// Whether the main file must exist, because the user named it.
    let isRequired: Bool
    private let environment: [String: String]

    /// - Parameters:
    ///   - path: The path of the main file that the user named; `nil` if the user named none.
    ///   - defaultPath: The path of the main file if the user named none. This file may be missing.
    ///   - environment: The environment variables. Default: none.
    package init(
        path: String?,
        default defaultPath: String = Self.systemFile,
        environment: [String: String] = [:]
    ) {
        self.environment = environment
        self.path = path ?? defaultPath
        isRequired = path != nil
    }

    /// The effective configuration.
    package struct Result: Sendable {
        package let configuration: ServiceConfiguration
        /// The path of the main file, which may be missing.
        package let path: String
        /// The files that were read.
        package let files: [String]
        /// The environment variables that were read, in the order of their names.
        package var variables: [String] {
            origins.values.filter { $0.position == nil }.map(\.source).sorted()
        }
        let origins: [String: ConfigurationReader.Origin]
        let tables: [ConfigurationReader.ArrayTable]
    }

    /// Reads the files and the environment variables.
    ///
    /// - Parameter base: The settings that no file and no variable changes.
    /// - Throws: ``InvalidConfiguration`` with all faults.
    package func read(into base: ServiceConfiguration) throws(InvalidConfiguration) -> Result {
        var reader = ConfigurationReader(base)
        var files: [String] = []
        var unreadable: [ConfigurationProblem] = []
        let candidates = candidates(&unreadable)
        for (file, isRequired) in candidates {
            do throws(SystemError) {
                reader.read(file, try Self.content(of: file))
                files.append(file)
            } catch {
                if error.errno == ENOENT, !isRequired { continue }
                unreadable.append(Self.problem(file, error))
            }
        }
        reader.read(environment: environment)
        reader.finish()
        var values = reader.values
        values.files = files
        if !unreadable.isEmpty { values.faultyKeys = nil }
        let problems = unreadable + reader.problems
        guard problems.isEmpty else {
            let sources = candidates.map(\.0) + SettingTable.settings.map(\.variable)
            throw InvalidConfiguration(problems, inOrderOf: sources, values: values)
        }
        var configuration = reader.configuration
        configuration.values = values
        return Result(
            configuration: configuration,
            path: path,
            files: files,
            origins: reader.origins,
            tables: reader.tables
        )
    }

    private func candidates(_ problems: inout [ConfigurationProblem]) -> [(String, isRequired: Bool)] {
        let directory = path + ".d"
        let names: [String]
        if access(directory, F_OK) == -1, errno == ENOENT {
            names = []
        } else if let found = try? FileManager.default.contentsOfDirectory(atPath: directory) {
            names = found
        } else {
            names = []
            let error = SystemError(call: "opendir", errno: errno)
            problems.append(Self.problem(directory, error))
        }
        let dropIns = names.filter { $0.hasSuffix(".toml") && !$0.hasPrefix(".") }
        // Sorted by the bytes of the names, so that the order does not depend on the locale.
        let sorted = dropIns.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        return [(path, isRequired)] + sorted.map { ("\(directory)/\($0)", true) }
    }

    /// Reads a file, but not much more than ``longestFile``.
    private static func content(of path: String) throws(SystemError) -> [UInt8] {
        let file = try FileDescriptor.opening(path)
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        while bytes.count <= longestFile {
            let count = try systemCall("read") { Glibc.read(file.rawValue, &piece, piece.count) }
            if count == 0 { break }
            bytes += piece.prefix(count)
        }
        return bytes
    }

    private static func problem(_ file: String, _ error: SystemError) -> ConfigurationProblem {
        let text = String(cString: strerror(error.errno))
        return ConfigurationProblem(
            source: file,
            line: 0,
            column: 0,
            message: "the file cannot be read: \(text)"
        )
    }
}

/// The owner of a directory. Root can act as this user, during a function or for the rest of the process. glibc changes
/// the user of all threads.
package struct DirectoryOwner: Sendable {
    package let user: SystemUser
    private let group: gid_t

    /// - Throws: ``SystemError`` of `stat`; `ENOTDIR` if the path names another kind of file.
    package init(of path: String) throws(SystemError) {
        var status = stat()
        try systemCall("stat \(path)") { stat(path, &status) }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw SystemError(call: "stat \(path)", errno: ENOTDIR)
        }
        user = SystemUser(id: status.st_uid)
        group = status.st_gid
    }

    /// Whether this process can act as the owner: it belongs to root, and the directory to another user.
    package var isAssumable: Bool { geteuid() == 0 && user.id != 0 }

    /// Gives this process the user and the group of the directory, and no other groups. Must be called by root.
    ///
    /// - Throws: ``SystemError``. The process may then be partly changed: it may have lost its groups, or have the
    ///   group of the directory.
    package func become() throws(SystemError) {
        try systemCall("setgroups") { setgroups(0, nil) }
        try systemCall("setgid") { setgid(group) }
        try systemCall("setuid") { setuid(user.id) }
    }

    /// Calls a function with the permissions of the owner and of its groups. Must be called by root.
    ///
    /// - Returns: `nil` if this process may not become another user.
    func act<Value>(_ body: () -> Value) -> Value? {
        let (rootGroup, rootGroups) = (getegid(), Self.supplementaryGroups)
        defer {
            _ = seteuid(0)
            _ = setegid(rootGroup)
            _ = setgroups(rootGroups.count, rootGroups)
        }
        let groupStatus = user.name.map { initgroups($0, group) } ?? setgroups(0, nil)
        guard groupStatus == 0, setegid(group) == 0, seteuid(user.id) == 0 else { return nil }
        return body()
    }

    private static var supplementaryGroups: [gid_t] {
        var groups = [gid_t](repeating: 0, count: max(0, Int(getgroups(0, nil))))
        let count = getgroups(CInt(groups.count), &groups)
        return Array(groups.prefix(max(0, Int(count))))
    }
}

extension ConfigurationFiles {
    /// If root has read the default files, checks that the user of the service can read them, too.
    ///
    /// - Parameters:
    ///   - result: What root has read.
    ///   - directory: The state directory of the service, which belongs to its user.
    /// - Throws: ``InvalidConfiguration`` with a fault for each file that this user cannot read.
    package func requireReadable(
        _ result: Result,
        byOwnerOf directory: String
    ) throws(InvalidConfiguration) {
        guard !isRequired, let owner = try? DirectoryOwner(of: directory), owner.isAssumable else { return }
        let paths = ["\(path).d"] + result.files
        // Read as root, and once, because the user database may be slow.
        let user = owner.user.description
        let problems = owner.act { paths.compactMap { Self.problem(opening: $0, as: user) } } ?? []
        guard problems.isEmpty else { throw InvalidConfiguration(problems, inOrderOf: paths) }
    }

    private static func problem(opening path: String, as user: String) -> ConfigurationProblem? {
        do throws(SystemError) {
            _ = try FileDescriptor.opening(path)
            return nil
        } catch {
            // The directory of the drop-ins may be missing.
            if error.errno == ENOENT { return nil }
            let reason = errnoDescription(error.errno)
            let message = "\(user), who runs the service, cannot read it: \(reason)"
            return ConfigurationProblem(source: path, line: 0, column: 0, message: message)
        }
    }
}
