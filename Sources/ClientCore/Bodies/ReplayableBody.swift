package import NetwatchEventLoop
package import NetwatchTransport

/// A request body that each transfer of a request reads from the first byte, for example after a redirect or in a
/// retry. The code that creates the body must keep the contents available and unchanged until the request ends.
package struct ReplayableBody: Sendable {
    let length: Int64
    let makeReader: @Sendable () -> any BlockingReader

    /// - Parameters:
    ///   - length: The length in bytes. A transfer fails if its reader provides more or fewer bytes.
    ///   - makeReader: Returns a reader that starts at the first byte. Called once per transfer; must not block.
    package init(length: Int64, makeReader: @escaping @Sendable () -> any BlockingReader) {
        self.length = length
        self.makeReader = makeReader
    }

    /// Creates a body from a regular file. The length is the file's current length.
    ///
    /// The file is opened now and stays open. All transfers share this one open file, so only one transfer at a time
    /// may read the body.
    ///
    /// - Throws: ``SystemError`` if the file cannot be opened, with `EISDIR` or `EINVAL` if it is not a regular file.
    package init(file path: String) throws(SystemError) {
        let reader = try FileReader(path: path)
        self.init(length: reader.length) {
            _ = reader.rewind()
            return reader
        }
    }
}
