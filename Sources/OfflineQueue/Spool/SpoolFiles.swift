package import NetwatchEventLoop

/// What a spool asks of the file system, with the system's own promises and no others: what was not synced may
/// be gone after a power cut, each piece of it by itself, and a name is durable only once its directory was
/// synced.
///
/// All of it may wait for the disk. Names are those of files in the spool's directory.
package protocol SpoolFiles: Sendable {
    /// The directory, for messages.
    var path: String { get }

    /// The directory that is open, whatever its path names by now; `nil` for one that is on no disk.
    func inode() throws(SystemError) -> Inode?

    /// Makes a file that was not there, with permissions 0600, and opens it for writing and reading.
    func create(_ name: String) throws(SystemError) -> any SpoolFile

    /// Opens a regular file for reading; with `EISDIR`, `ELOOP` or `EINVAL` for anything else.
    func open(_ name: String) throws(SystemError) -> any SpoolFile

    /// Opens a regular file that is not the spool's for reading; with `EISDIR` or `EINVAL` for anything else.
    func openForeign(_ path: String) throws(SystemError) -> any SpoolFile

    func rename(_ name: String, to newName: String) throws(SystemError)

    func remove(_ name: String) throws(SystemError)

    /// Makes the names durable (`fsync(2)` of the directory).
    func syncDirectory() throws(SystemError)

    /// The names of everything in the directory, in no order.
    func names() throws(SystemError) -> [String]

    /// How many bytes may still be written there.
    func freeBytes() throws(SystemError) -> Int64
}

/// An open file. Closed when nobody has it any more. Several threads may use it.
package protocol SpoolFile: AnyObject, Sendable {
    func size() throws(SystemError) -> Int64

    /// - Returns: How many bytes were read; 0 at the end.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SystemError) -> Int

    /// - Returns: How many bytes were written, at least one if there is one to be written.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) -> Int

    /// Takes over all that another file holds without copying it. Returns whether that is possible.
    func clone(_ source: any SpoolFile) -> Bool

    /// Makes the bytes durable (`fdatasync(2)`).
    func sync() throws(SystemError)
}
