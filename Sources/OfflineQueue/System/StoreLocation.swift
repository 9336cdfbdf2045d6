internal import Glibc
internal import NetwatchEventLoop

/// Checks whether the paths of a store still lead to the files that the store has open.
///
/// A descriptor stays open when its file is removed or replaced. SQLite would continue to write to the removed file,
/// and the next start would find none of that data. A check takes one stat(2) per file.
struct StoreLocation: Sendable {
    private struct Place: Sendable {
        let name: String
        let path: String
        let inode: Inode
    }

    private var places: [Place] = []

    /// Adds a file or directory to check.
    ///
    /// - Parameters:
    ///   - name: What the file is, for error messages, such as "the queue's lock".
    ///   - inode: The inode of the open file. `nil`: the inode of the file that is at the path now.
    /// - Throws: ``SystemError`` if `stat` or `getcwd` fails.
    mutating func add(_ name: String, at path: String, inode: Inode? = nil) throws(SystemError) {
        let found = if let inode { inode } else { try Inode(at: path) }
        places.append(Place(name: name, path: try Self.absolute(path), inode: found))
    }

    /// Returns an error for the first added file that was removed, replaced or cannot be accessed; `nil` if all files
    /// are in place.
    func difference() -> QueueError? {
        for place in places {
            guard let problem = problem(of: place) else { continue }
            return QueueError(
                .storeReplaced,
                "\(place.name) `\(place.path)` \(problem) while the queue was running; the queue accepts no more requests",
                path: place.path
            )
        }
        return nil
    }

    /// Returns the absolute path, which stays valid when the process changes its working directory.
    private static func absolute(_ path: String) throws(SystemError) -> String {
        guard !path.hasPrefix("/") else { return path }
        guard let current = getcwd(nil, 0) else { throw SystemError(call: "getcwd", errno: errno) }
        defer { free(current) }
        return "\(String(cString: current))/\(path)"
    }

    private func problem(of place: Place) -> String? {
        do throws(SystemError) {
            return try Inode(at: place.path) == place.inode ? nil : "was replaced"
        } catch {
            return [ENOENT, ENOTDIR].contains(error.errno)
                ? "was removed or moved" : "cannot be accessed (\(errnoDescription(error.errno)))"
        }
    }
}
