internal import Glibc
internal import NetwatchEventLoop

/// The owner of a directory. Root can act with its permissions.
struct DirectoryOwner {
    let user: SystemUser
    private let group: gid_t

    /// `nil` if the directory does not exist or belongs to root, or if this process does not belong to root.
    init?(of directory: String) {
        var status = stat()
        guard geteuid() == 0, stat(directory, &status) == 0, status.st_uid != 0 else { return nil }
        user = SystemUser(id: status.st_uid)
        group = status.st_gid
    }

    /// Calls a function with the permissions of the owner and of its groups. All threads have them until it returns.
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
        guard !isRequired, let owner = DirectoryOwner(of: directory) else { return }
        let paths = ["\(path).d"] + result.files
        let problems = owner.act { paths.compactMap { Self.problem(opening: $0, as: owner.user) } } ?? []
        guard problems.isEmpty else { throw InvalidConfiguration(problems, inOrderOf: paths) }
    }

    private static func problem(opening path: String, as user: SystemUser) -> ConfigurationProblem? {
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
