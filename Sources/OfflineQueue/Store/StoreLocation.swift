internal import Glibc
internal import NetwatchEventLoop

/// Whether a store's files are still what its paths name.
///
/// Descriptors stay open on files that were removed or replaced. SQLite goes on writing to them, and the next start
/// finds nothing of that. Comparing costs one `stat(2)` for each file.
struct StoreLocation: Sendable {
    private struct Place: Sendable {
        let name: String
        let path: String
        let inode: Inode
    }

    private var places: [Place] = []

    /// Adds a file to compare.
    ///
    /// - Parameters:
    ///   - name: What the file is, for messages.
    ///   - inode: What is open; `nil` for what the path names now.
    /// - Throws: ``SystemError`` of `stat`.
    mutating func add(_ name: String, at path: String, inode: Inode? = nil) throws(SystemError) {
        let found = if let inode { inode } else { try Inode(at: path) }
        places.append(Place(name: name, path: try Self.absolute(path), inode: found))
    }

    /// What is not where it was, the outermost first; `nil` when everything is there.
    func difference() -> QueueError? {
        for place in places {
            guard let problem = problem(of: place) else { continue }
            return QueueError(
                .storeReplaced,
                "\(place.name) `\(place.path)` \(problem) while the queue ran; nothing more is accepted",
                path: place.path
            )
        }
        return nil
    }

    /// The path as it stays true when the process changes its working directory.
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
                ? "was removed or moved" : "cannot be looked up any more (\(errnoDescription(error.errno)))"
        }
    }
}
