package import NetwatchEventLoop

/// The file system operations of a spool. Tests replace them with a simulated disk that fails or loses data.
///
/// After a power failure, any data that was not synced may be lost. A name is durable only after ``syncDirectory()``.
///
/// All methods may block on the disk. Names refer to files in the spool's directory.
package protocol SpoolFiles: Sendable {
    /// The path of the directory, for error messages.
    var path: String { get }

    /// Returns the inode of the opened directory, even if another directory is at its path now. Returns `nil` for a
    /// simulated directory.
    func inode() throws(SystemError) -> Inode?

    /// Creates a file with mode 0600, and opens it for reading and writing. Throws if the file exists.
    func create(_ name: String) throws(SystemError) -> any SpoolFile

    /// Opens a regular file for reading. Throws `EISDIR` for a directory, `ELOOP` for a symbolic link, and `EINVAL` for
    /// any other kind of file.
    func open(_ name: String) throws(SystemError) -> any SpoolFile

    /// Opens a regular file outside the spool for reading, and follows symbolic links. Throws `EISDIR` for a directory,
    /// and `EINVAL` for any other kind of file.
    func openExternal(_ path: String) throws(SystemError) -> any SpoolFile

    func rename(_ name: String, to newName: String) throws(SystemError)

    func remove(_ name: String) throws(SystemError)

    /// Makes the names of all files durable (fsync(2) of the directory).
    func syncDirectory() throws(SystemError)

    /// Returns the names of all entries of the directory, in no particular order.
    func names() throws(SystemError) -> [String]

    /// Returns the number of free bytes on the file system.
    func freeBytes() throws(SystemError) -> Int64
}

/// An open file. It is closed when the last reference is released. Several threads may use it at the same time.
package protocol SpoolFile: AnyObject, Sendable {
    func size() throws(SystemError) -> Int64

    /// Reads bytes at an offset.
    ///
    /// - Returns: The number of bytes read, which may be less than the size of the buffer; 0 at the end of the file.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SystemError) -> Int

    /// Writes bytes at an offset.
    ///
    /// - Returns: The number of bytes written, which may be less than `bytes.count`.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) -> Int

    /// Makes this file share the data of another file, without copying it. Returns `false` if the file system cannot do
    /// this.
    func clone(_ source: any SpoolFile) -> Bool

    /// Makes the bytes of the file durable (fdatasync(2)).
    func sync() throws(SystemError)
}
