internal import Glibc
internal import NetwatchEventLoop

/// Checks a queue's directory before it is opened.
enum StoreDirectory {
    /// Checks that this user owns the directory. Even root must not open another user's queue, because the service
    /// could not use the files that root creates there.
    ///
    /// - Throws: An error with status 77 that names the owner, or with status 64 if there is no queue.
    static func requireOwn(_ path: String) throws(CommandError) {
        let owner = try owner(of: path)
        guard owner == geteuid() else {
            let name = userName(owner)
            throw CommandError(
                .noPermission,
                "the queue in `\(path)` belongs to \(name.summary), and no service is running for it",
                hint:
                    "run the command as that user: `setpriv --reuid=\(name.argument) --clear-groups netwatch queue …`"
            )
        }
        // The lock file remains after a store was set aside.
        guard ["queue.sqlite", "queue.lock"].contains(where: { access("\(path)/\($0)", F_OK) == 0 }) else {
            throw missing(path)
        }
    }

    private static func missing(_ path: String, _ reason: String? = nil) -> CommandError {
        CommandError(
            .usage,
            "there is no queue in `\(path)`" + (reason.map { ": \($0)" } ?? ""),
            hint: "`netwatch serve --state-dir DIRECTORY` creates a queue"
        )
    }

    private static func owner(of path: String) throws(CommandError) -> uid_t {
        var status = stat()
        guard stat(path, &status) == 0 else {
            let error = errno
            if error == EACCES || error == EPERM {
                throw CommandError(
                    .noPermission,
                    "this user may not read `\(path)`",
                    hint: "run the command as the owner of the directory"
                )
            }
            throw missing(path, errnoDescription(error))
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw missing(path, "it is not a directory")
        }
        return status.st_uid
    }

    /// Returns a description of a user, and the argument for setpriv(1). Without a name, both use the id: a dynamic
    /// user of a service manager has no name after its service has ended.
    private static func userName(_ id: uid_t) -> (summary: String, argument: String) {
        guard let entry = getpwuid(id) else { return ("the user \(id)", "\(id)") }
        let name = String(cString: entry.pointee.pw_name)
        return ("the user `\(name)`", name)
    }
}
