internal import Glibc

/// An `inotify(7)` instance: tells of changes of files and of names in directories.
package final class Inotify: Sendable {
    /// What happened.
    package struct Event: Hashable, Sendable {
        /// The watch it happened to; -1 for an overflow, which happened to all.
        package let watch: CInt
        /// `IN_…`.
        package let mask: UInt32
        /// The name in a watched directory; empty when it happened to the watched file or directory itself.
        package let name: String
    }

    private let file: FileDescriptor

    /// - Throws: ``SystemError`` of `inotify_init1`: `EMFILE` when the user has as many instances as
    ///   `fs.inotify.max_user_instances` allows, 128 by default.
    package init() throws(SystemError) {
        let flags = O_CLOEXEC | O_NONBLOCK
        file = FileDescriptor(owning: try systemCall("inotify_init1") { inotify_init1(flags) })
    }

    /// The descriptor to wait on.
    package var descriptor: CInt {
        file.rawValue
    }

    /// Watches a file or a directory, in place of an earlier watch of the same one.
    ///
    /// - Parameter events: `IN_…`, flags included.
    /// - Returns: The watch. Two paths to one file have one watch.
    /// - Throws: ``SystemError`` of `inotify_add_watch`: `ENOENT`, `EACCES` without permission to read,
    ///   `ENOSPC` beyond `fs.inotify.max_user_watches`.
    package func watch(_ path: String, for events: CInt) throws(SystemError) -> CInt {
        try systemCall("inotify_add_watch \(path)") {
            inotify_add_watch(file.rawValue, path, UInt32(bitPattern: events))
        }
    }

    /// Ends a watch. Events that wait already are still read.
    package func end(_ watch: CInt) {
        // Fails when the watch ended by itself, as it does when its file goes.
        _ = inotify_rm_watch(file.rawValue, watch)
    }

    /// Reads some of the events that wait; what is left keeps the descriptor readable. Never waits itself.
    package func read() -> [Event] {
        withUnsafeTemporaryAllocation(byteCount: 16 * 1024, alignment: 8) { buffer in
            let count = Glibc.read(file.rawValue, buffer.baseAddress, buffer.count)
            guard count > 0 else { return [] }
            return Self.events(in: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
    }

    /// `struct inotify_event`: watch, mask, cookie, length of the name, and the name filled up with zeros.
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
