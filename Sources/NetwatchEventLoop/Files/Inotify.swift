internal import Glibc

/// An `inotify(7)` instance, which reports changes of files and of directory entries.
package final class Inotify: Sendable {
    /// A reported change.
    package struct Event: Hashable, Sendable {
        /// The watch that the event belongs to; -1 for an overflow, which affects all watches.
        package let watch: CInt
        /// The event mask, `IN_…`.
        package let mask: UInt32
        /// The name in a watched directory; empty if the event concerns the watched file or directory itself.
        package let name: String
    }

    private let file: FileDescriptor

    /// Creates an instance.
    ///
    /// - Throws: ``SystemError`` of `inotify_init1`: `EMFILE` if the user already has `fs.inotify.max_user_instances`
    ///   instances, 128 by default.
    package init() throws(SystemError) {
        let flags = O_CLOEXEC | O_NONBLOCK
        file = FileDescriptor(owning: try systemCall("inotify_init1") { inotify_init1(flags) })
    }

    /// The descriptor to wait for.
    package var descriptor: CInt {
        file.rawValue
    }

    /// Watches a file or a directory. Replaces an earlier watch of the same one.
    ///
    /// - Parameter events: `IN_…`, including flags.
    /// - Returns: The watch. Two paths to the same file share one watch.
    /// - Throws: ``SystemError`` of `inotify_add_watch`: `ENOENT`, `EACCES` without read permission, `ENOSPC` beyond
    ///   `fs.inotify.max_user_watches`.
    package func watch(_ path: String, for events: CInt) throws(SystemError) -> CInt {
        try systemCall("inotify_add_watch \(path)") {
            inotify_add_watch(file.rawValue, path, UInt32(bitPattern: events))
        }
    }

    /// Removes a watch. Events that are already pending are still read.
    package func end(_ watch: CInt) {
        // Fails if the watch ended by itself, because its file was removed.
        _ = inotify_rm_watch(file.rawValue, watch)
    }

    /// Reads some of the pending events. The rest keeps the descriptor readable. Never blocks.
    package func read() -> [Event] {
        withUnsafeTemporaryAllocation(byteCount: 16 * 1024, alignment: 8) { buffer in
            let count = Glibc.read(file.rawValue, buffer.baseAddress, buffer.count)
            guard count > 0 else { return [] }
            return Self.events(in: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
    }

    /// Parses `struct inotify_event` entries: watch, mask, cookie, length of the name, and the zero-padded name.
    private static func events(in bytes: UnsafeRawBufferPointer) -> [Event] {
        let headerSize = 16
        var events: [Event] = []
        var rest = bytes[...]
        while rest.count >= headerSize {
            let header = UnsafeRawBufferPointer(rebasing: rest.prefix(headerSize))
            let nameSize = Int(header.loadUnaligned(fromByteOffset: 12, as: UInt32.self))
            let name = rest.dropFirst(headerSize).prefix(nameSize).prefix { $0 != 0 }
            events.append(
                Event(
                    watch: header.loadUnaligned(as: CInt.self),
                    mask: header.loadUnaligned(fromByteOffset: 4, as: UInt32.self),
                    name: String(decoding: name, as: UTF8.self)
                )
            )
            rest = rest.dropFirst(headerSize + nameSize)
        }
        return events
    }
}
