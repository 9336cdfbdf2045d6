package import NetwatchEventLoop

/// The file system operations of a spool. They give only the guarantees of the system: after a power failure, any part
/// of the data that was not synced may be lost. A name is durable only after its directory was synced.
///
/// All methods may block on the disk. Names are those of files in the spool's directory.
package protocol SpoolFiles: Sendable {
    /// The path of the directory, for messages.
    var path: String { get }

    /// Returns the inode of the open directory, whatever its path names by now; `nil` for a directory that is not on a
    /// disk.
    func inode() throws(SystemError) -> Inode?

    /// Creates a new file with permissions 0600, and opens it for writing and reading.
    func create(_ name: String) throws(SystemError) -> any SpoolFile

    /// Opens a regular file for reading. Throws `EISDIR`, `ELOOP` or `EINVAL` for anything else.
    func open(_ name: String) throws(SystemError) -> any SpoolFile

    /// Opens a regular file outside the spool for reading. Throws `EISDIR` or `EINVAL` for anything else.
    func openExternal(_ path: String) throws(SystemError) -> any SpoolFile

    func rename(_ name: String, to newName: String) throws(SystemError)

    func remove(_ name: String) throws(SystemError)

    /// Makes the names durable (`fsync(2)` of the directory).
    func syncDirectory() throws(SystemError)

    /// Returns the names of everything in the directory, in no particular order.
    func names() throws(SystemError) -> [String]

    /// Returns the number of bytes that are free on the file system.
    func freeBytes() throws(SystemError) -> Int64
}

/// An open file. It is closed when the last reference is released. Several threads may use it.
package protocol SpoolFile: AnyObject, Sendable {
    func size() throws(SystemError) -> Int64

    /// - Returns: The number of bytes read; 0 at the end.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SystemError) -> Int

    /// - Returns: The number of bytes written, at least one unless `bytes` is empty.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) -> Int

    /// Takes over the content of another file without copying it. Returns `false` when that is not possible.
    func clone(_ source: any SpoolFile) -> Bool

    /// Makes the bytes durable (`fdatasync(2)`).
    func sync() throws(SystemError)
}
