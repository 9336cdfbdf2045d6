internal import ClientCore
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchService
internal import OfflineQueue

/// Checks a queue's directory before it is opened.
enum StoreDirectory {
    /// Checks that this user owns the directory. Root becomes its owner for the rest of the process, because the
    /// service could not use the files that root would create there.
    ///
    /// - Parameter mayBeEmpty: Whether the directory may be empty. Default: it must contain a queue.
    /// - Throws: An error with status 77 that names the owner, or with status 64 if there is no queue.
    static func requireOwn(_ path: String, mayBeEmpty: Bool = false) throws(CommandError) {
        let owner = try owner(of: path)
        if owner.isAssumable { try become(owner, of: path) }
        guard owner.user.id == geteuid() else {
            throw CommandError(
                .noPermission,
                "the queue in `\(path)` belongs to \(owner.user), and no service with this socket uses it",
                hint: "run the command as root or as that user"
            )
        }
        if mayBeEmpty, isEmpty(path) { return }
        // The lock file remains after a store was set aside.
        guard ["queue.sqlite", "queue.lock"].contains(where: { access("\(path)/\($0)", F_OK) == 0 }) else {
            throw missing(path)
        }
    }

    /// Returns whether a directory contains nothing, except what a new ext4 file system contains.
    private static func isEmpty(_ path: String) -> Bool {
        let names = try? FileManager.default.contentsOfDirectory(atPath: path)
        return names.map { $0.allSatisfy { $0 == "lost+found" } } ?? false
    }

    /// Whether only another user, and not this one, may open a directory.
    static func isOfAnotherUser(_ path: String) -> Bool {
        guard geteuid() != 0 else { return false }
        do throws(CommandError) {
            return try owner(of: path).user.id != geteuid()
        } catch {
            return error.status == .noPermission
        }
    }

    /// Checks that the database of a queue exists. A new one would hide the loss of the requests.
    ///
    /// The database may be missing if the directory contains no spool and no log either: a store that was set aside
    /// leaves none of them. It may also be missing if damage is recorded (`queue.damaged`), because setting the store
    /// aside may have been interrupted. Opening the queue then reports the damage.
    ///
    /// - Throws: An error with status 78.
    static func requireDatabase(in path: String) throws(CommandError) {
        guard OfflineQueue.hasLostDatabase(directory: path) else { return }
        throw CommandError(
            .unusableStore,
            "the queue's database `\(path)/queue.sqlite` is missing",
            hint: "if the file was moved away, move it back; otherwise restore a copy of the whole "
                + "directory; without a copy, `\(setAsideCommand(for: path))` moves the remaining files away"
        )
    }

    /// Returns the command that sets aside the store in a directory. The directory is named unless it is the default
    /// without the user's variables.
    ///
    /// - Parameter paths: The default paths. Default: those of this process.
    static func setAsideCommand(for path: String, paths: ServicePaths = ServicePaths()) -> String {
        let command = "netwatch queue verify --set-aside"
        let isNamed = paths.isSocketNamed || paths.namedStateDirectory != nil
        let isDefault = !isNamed && path == paths.existingStateDirectory ?? paths.stateDirectory
        return isDefault ? command : "\(command) --state-dir \(Shell.quoted(path))"
    }

    private static func become(_ owner: DirectoryOwner, of path: String) throws(CommandError) {
        do throws(SystemError) {
            try owner.become()
            try systemCall("access \(path)") { access(path, R_OK | W_OK | X_OK) }
        } catch {
            guard error.errno != EROFS else {
                let reason = errnoDescription(error.errno)
                throw CommandError(.unknown, "could not open the queue in `\(path)`: \(reason)")
            }
            throw CommandError(
                .noPermission,
                "could not open `\(path)` as its owner, \(owner.user): \(error)",
                hint: "the owner needs access to the directory and to all directories above it"
            )
        }
    }

    private static func owner(of path: String) throws(CommandError) -> DirectoryOwner {
        do throws(SystemError) {
            return try DirectoryOwner(of: path)
        } catch {
            guard error.errno == EACCES || error.errno == EPERM else {
                throw missing(path, errnoDescription(error.errno))
            }
            throw CommandError(
                .noPermission,
                "this user may not read `\(path)`",
                hint: "run the command as the owner of the directory"
            )
        }
    }

    private static func missing(_ path: String, _ reason: String? = nil) -> CommandError {
        CommandError(
            .usage,
            "there is no queue in `\(path)`" + (reason.map { ": \($0)" } ?? ""),
            hint: SystemUnit.isInstalled && path == ServicePaths.systemState
                ? SystemUnit.startHint(stateDirectory: path)
                : "`netwatch serve --state-dir DIRECTORY` creates a queue"
        )
    }
}
