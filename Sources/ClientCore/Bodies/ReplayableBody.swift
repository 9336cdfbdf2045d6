package import NetwatchEventLoop
package import NetwatchTransport

/// A body that its owner keeps open, so that its contents are the same for every transfer.
package struct ReplayableBody: Sendable {
    let length: Int64
    let makeReader: @Sendable () -> any BlockingReader

    /// - Parameters:
    ///   - length: The length in bytes. If a reader provides a different length, its transfer fails.
    ///   - makeReader: Returns a reader that starts at the first byte. Must not block.
    package init(length: Int64, makeReader: @escaping @Sendable () -> any BlockingReader) {
        self.length = length
        self.makeReader = makeReader
    }

    /// Opens a regular file, with its current length. It stays open, and is read by one transfer at a time.
    ///
    /// - Throws: ``SystemError`` if the file cannot be opened; `EISDIR` or `EINVAL` if it is not a regular file.
    package init(file path: String) throws(SystemError) {
        let reader = try FileReader(path: path)
        self.init(length: reader.length) {
            _ = reader.rewind()
            return reader
        }
    }
}
