internal import Glibc
package import NetwatchEventLoop

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
