/// A decoder of one content coding (RFC 9110 §8.4.1). It decodes one body.
protocol CodingDecoder: AnyObject {
    /// Whether the bytes so far are a complete body.
    var isComplete: Bool { get }

    /// Decodes as many bytes as the buffer has room for. May be called with empty input, to get the rest of the decoded
    /// bytes. Decodes at least one byte of other input, or fills the buffer.
    ///
    /// - Parameters:
    ///   - input: The next bytes. The function removes those that it has decoded.
    ///   - output: The buffer for the decoded bytes.
    /// - Returns: The number of decoded bytes in the buffer.
    /// - Throws: ``InvalidCoding`` if the bytes are invalid, or follow the end of the body.
    func decode(
        _ input: inout UnsafeRawBufferPointer,
        into output: UnsafeMutableRawBufferPointer
    ) throws(InvalidCoding) -> Int
}

/// The error for bytes that cannot be decoded.
struct InvalidCoding: Error {}

extension UnsafeRawBufferPointer {
    /// Removes bytes from the beginning.
    mutating func consume(_ count: Int) {
        self = UnsafeRawBufferPointer(rebasing: dropFirst(count))
    }
}
