/// The ways of writing any byte or character of a text with other characters.
enum Escape: CaseIterable {
    /// `%2F` (RFC 3986 §2.1), with hexadecimal digits in either case.
    case percent
    /// `\/`, `\n`, `\u002f` and so on (RFC 8259 §7).
    case json
    /// `&amp;`, `&#47;`, `&#x2f;` and so on.
    case html
    /// `+` for a space, in forms.
    case plus
    /// A line break, which stands for nothing: Base64 in mail has 76 characters in a line.
    case lineBreak

    /// Returns whether an escape may begin with this byte.
    func begins(with byte: UInt8) -> Bool {
        switch self {
        case .percent: byte == UInt8(ascii: "%")
        case .json: byte == UInt8(ascii: "\\")
        case .html: byte == UInt8(ascii: "&")
        case .plus: byte == UInt8(ascii: "+")
        case .lineBreak: byte == 10 || byte == 13
        }
    }

    /// Returns what the escape at the beginning of `bytes` stands for, in UTF-8, and its length; `nil` if there is no
    /// escape.
    ///
    /// - Parameter bytes: The first byte satisfies ``begins(with:)``.
    func decoded(_ bytes: ArraySlice<UInt8>) -> (value: [UInt8], length: Int)? {
        switch self {
        case .percent: Self.number(bytes.dropFirst().prefix(2), digits: 2).map { ([UInt8($0)], 3) }
        case .json: Self.json(bytes)
        case .html: Self.html(bytes.dropFirst().prefix(Self.longestEntity))
        case .plus: ([UInt8(ascii: " ")], 1)
        case .lineBreak: ([], 1)
        }
    }

    /// Returns the value of hexadecimal digits; `nil` if there are not exactly `digits` of them.
    private static func number(_ bytes: ArraySlice<UInt8>, digits: Int) -> UInt32? {
        guard bytes.count == digits else { return nil }
        return number(bytes, radix: 16)
    }

    /// Returns the value of one or more digits; `nil` if a byte is not a digit.
    private static func number(_ bytes: ArraySlice<UInt8>, radix: Int) -> UInt32? {
        // `UInt32` would accept a sign.
        guard let first = bytes.first, !"+-".utf8.contains(first) else { return nil }
        return UInt32(String(decoding: bytes, as: UTF8.self), radix: radix)
    }

    private static func utf8(_ number: UInt32) -> [UInt8]? {
        Unicode.Scalar(number).map { Array(String($0).utf8) }
    }
}

// MARK: - JSON

extension Escape {
    private static func json(_ bytes: ArraySlice<UInt8>) -> (value: [UInt8], length: Int)? {
        switch bytes.dropFirst().first {
        case UInt8(ascii: "u"): unicode(bytes)
        case UInt8(ascii: "n"): ([10], 2)
        case UInt8(ascii: "r"): ([13], 2)
        case UInt8(ascii: "t"): ([9], 2)
        case UInt8(ascii: "b"): ([8], 2)
        case UInt8(ascii: "f"): ([12], 2)
        // JSON has `\"`, `\\` and `\/`. Languages whose literals look alike have `\'`, too.
        case let byte? where "\"\\/'".utf8.contains(byte): ([byte], 2)
        default: nil
        }
    }

    private static func unicode(_ bytes: ArraySlice<UInt8>) -> (value: [UInt8], length: Int)? {
        guard let unit = codeUnit(bytes) else { return nil }
        guard unit & 0xfc00 == 0xd800 else { return utf8(unit).map { ($0, 6) } }
        // A surrogate pair: two escapes for one character.
        guard let low = codeUnit(bytes.dropFirst(6)), low & 0xfc00 == 0xdc00 else { return nil }
        return utf8(0x10000 + (unit & 0x3ff) << 10 + (low & 0x3ff)).map { ($0, 12) }
    }

    /// Returns the UTF-16 code unit of a `\uXXXX` at the beginning of the bytes.
    private static func codeUnit(_ bytes: ArraySlice<UInt8>) -> UInt32? {
        bytes.starts(with: "\\u".utf8) ? number(bytes.dropFirst(2).prefix(4), digits: 4) : nil
    }
}

// MARK: - HTML

extension Escape {
    /// The maximum number of bytes of an entity after its `&`: those of `#x0010ffff;`.
    private static let longestEntity = 11

    /// The entities that programs use when they insert text into a page.
    private static let entities: [String: UInt8] = [
        "amp": UInt8(ascii: "&"), "lt": UInt8(ascii: "<"), "gt": UInt8(ascii: ">"),
        "quot": UInt8(ascii: "\""), "apos": UInt8(ascii: "'"),
    ]

    private static func html(_ bytes: ArraySlice<UInt8>) -> (value: [UInt8], length: Int)? {
        guard let end = bytes.firstIndex(of: UInt8(ascii: ";")) else { return nil }
        let name = bytes[..<end]
        let length = name.count + 2
        guard name.first == UInt8(ascii: "#") else {
            return entities[String(decoding: name, as: UTF8.self)].map { ([$0], length) }
        }
        let digits = name.dropFirst()
        let isHexadecimal = digits.first == UInt8(ascii: "x") || digits.first == UInt8(ascii: "X")
        let value = isHexadecimal ? number(digits.dropFirst(), radix: 16) : number(digits, radix: 10)
        return value.flatMap(utf8).map { ($0, length) }
    }
}

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
