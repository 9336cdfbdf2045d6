internal import Glibc

/// An `inotify(7)` instance, which reports changes of files and of directory entries.
package final class Inotify: Sendable {
    /// A reported change.
    package struct Event: Hashable, Sendable {
        /// The watch to which the event belongs; -1 if the kernel dropped events (`IN_Q_OVERFLOW`), which may affect
        /// any watch.
        package let watch: CInt
        /// The event mask: a combination of `IN_…` constants.
        package let mask: UInt32
        /// The name of the changed entry in a watched directory; empty if the watched file or directory itself has
        /// changed.
        package let name: String
    }

    private let file: FileDescriptor

    /// Creates an instance.
    ///
    /// - Throws: ``SystemError`` of `inotify_init1`, with `EMFILE` if the user already has
    ///   `fs.inotify.max_user_instances` instances (by default 128).
    package init() throws(SystemError) {
        let flags = O_CLOEXEC | O_NONBLOCK
        file = FileDescriptor(owning: try systemCall("inotify_init1") { inotify_init1(flags) })
    }

    /// The descriptor to wait for.
    package var descriptor: CInt {
        file.rawValue
    }

    /// Watches a file or directory. Replaces an earlier watch of the same file or directory.
    ///
    /// - Parameters:
    ///   - path: The path of the file or directory.
    ///   - events: The events and flags: a combination of `IN_…` constants.
    /// - Returns: The watch. Two paths to the same file share one watch.
    /// - Throws: ``SystemError`` of `inotify_add_watch`, with `ENOENT`, `EACCES` (no read permission), or `ENOSPC`
    ///   (more than `fs.inotify.max_user_watches` watches).
    package func watch(_ path: String, for events: CInt) throws(SystemError) -> CInt {
        try systemCall("inotify_add_watch \(path)") {
            inotify_add_watch(file.rawValue, path, UInt32(bitPattern: events))
        }
    }

    /// Removes a watch. ``read()`` still returns events that are already pending.
    package func end(_ watch: CInt) {
        // This fails if the watched file was removed, which has already ended the watch.
        _ = inotify_rm_watch(file.rawValue, watch)
    }

    /// Reads some of the pending events, without blocking. If others remain, the descriptor stays readable.
    package func read() -> [Event] {
        withUnsafeTemporaryAllocation(byteCount: 16 * 1024, alignment: 8) { buffer in
            let count = Glibc.read(file.rawValue, buffer.baseAddress, buffer.count)
            guard count > 0 else { return [] }
            return Self.events(in: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
    }

    /// Parses `struct inotify_event` entries. Each has a watch, a mask, a cookie, the length of the name, and the name
    /// padded with zeros.
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
