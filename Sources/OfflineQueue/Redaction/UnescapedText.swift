/// A text in which escapes have been replaced by what they stand for, with the positions of its bytes in the original.
struct UnescapedText {
    let bytes: [UInt8]
    /// The range of the original from which each byte comes; `nil` if this is the original.
    private let sources: [Range<Int>]?

    init(_ original: [UInt8]) {
        self.init(bytes: original, sources: nil)
    }

    private init(bytes: [UInt8], sources: [Range<Int>]?) {
        (self.bytes, self.sources) = (bytes, sources)
    }

    /// Returns the range of the original from which a range of ``bytes`` comes, which must not be empty.
    func original(of range: Range<Int>) -> Range<Int> {
        guard let sources else { return range }
        return sources[range.lowerBound].lowerBound..<sources[range.upperBound - 1].upperBound
    }

    /// Returns the text without the escapes of one kind; `nil` if it contains none.
    func undoing(_ escape: Escape) -> UnescapedText? {
        guard bytes.contains(where: escape.begins(with:)) else { return nil }
        var (decoded, sources): ([UInt8], [Range<Int>]) = ([], [])
        decoded.reserveCapacity(bytes.count)
        sources.reserveCapacity(bytes.count)
        var (position, isChanged) = (0, false)
        while position < bytes.count {
            if escape.begins(with: bytes[position]),
                let (value, length) = escape.decoded(bytes[position...])
            {
                let source = original(of: position..<position + length)
                decoded += value
                sources += repeatElement(source, count: value.count)
                position += length
                isChanged = true
            } else {
                decoded.append(bytes[position])
                sources.append(original(of: position..<position + 1))
                position += 1
            }
        }
        return isChanged ? UnescapedText(bytes: decoded, sources: sources) : nil
    }
}
