internal import Glibc
internal import NetwatchEventLoop

/// Checks whether a store's paths still name the files that it has open.
///
/// Descriptors stay open when their files are removed or replaced. SQLite keeps writing to them, and the next start
/// finds none of that data. A check takes one `stat(2)` per file.
struct StoreLocation: Sendable {
    private struct Place: Sendable {
        let name: String
        let path: String
        let inode: Inode
    }

    private var places: [Place] = []

    /// Adds a file to check.
    ///
    /// - Parameters:
    ///   - name: A description of the file, for messages.
    ///   - inode: The inode that is open; `nil` for the one that the path names now.
    /// - Throws: ``SystemError`` of `stat`.
    mutating func add(_ name: String, at path: String, inode: Inode? = nil) throws(SystemError) {
        let found = if let inode { inode } else { try Inode(at: path) }
        places.append(Place(name: name, path: try Self.absolute(path), inode: found))
    }

    /// Returns an error for the outermost file that is not in its place; `nil` when all files are.
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

    /// Makes a path absolute, so that it stays valid when the process changes its working directory.
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
