/// The header fields of a response, stored as bytes in the order received.
///
/// Strings are created on access, because most fields are never read.
package struct HeaderFields: Hashable, Sendable {
    /// The position of a field in `bytes`. Its name begins at `name`, and its value at `value`.
    private struct Place: Hashable {
        let name: Int
        let value: Int
        var end: Int
    }

    private var bytes: [UInt8] = []
    private var places: [Place] = []

    package init(_ headers: [TransferRequest.Header] = []) {
        for header in headers { append(name: Array(header.name.utf8), value: Array(header.value.utf8)) }
    }

    /// All fields in the order received. Names keep the server's spelling.
    package var all: [TransferRequest.Header] {
        places.map { .init(text($0.name..<$0.value), text($0.value..<$0.end)) }
    }

    /// Returns the values of all fields with this name, in the order received. The comparison ignores case.
    package func values(of name: String) -> [String] {
        places.filter { isNamed(name, $0) }.map { text($0.value..<$0.end) }
    }

    /// Returns the values of all fields with this name as ``ExactText``, in the order received. The values can be
    /// compared byte for byte and sent again unchanged.
    package func exactValues(of name: String) -> [String] {
        places.filter { isNamed(name, $0) }.map { ExactText.decode(bytes[$0.value..<$0.end]) }
    }

    /// Returns the elements of the comma-separated list that all fields with this name form, in the order received,
    /// without the spaces and tabs around them (RFC 9110 §5.6.1). Empty elements are included.
    func listElements(of name: String) -> [ArraySlice<UInt8>] {
        var elements: [ArraySlice<UInt8>] = []
        forEachListElement(of: name) { elements.append($0) }
        return elements
    }

    /// Returns whether the elements that ``listElements(of:)`` returns are all equal.
    func hasEqualListElements(of name: String) -> Bool {
        var first: ArraySlice<UInt8>?
        var areEqual = true
        forEachListElement(of: name) { element in
            if let first { areEqual = areEqual && element == first } else { first = element }
        }
        return areEqual
    }

    private func forEachListElement(of name: String, _ body: (ArraySlice<UInt8>) -> Void) {
        for place in places where isNamed(name, place) {
            var rest = bytes[place.value..<place.end]
            while let comma = rest.firstIndex(of: UInt8(ascii: ",")) {
                body(Self.trimmed(rest[..<comma]))
                rest = rest[(comma + 1)...]
            }
            body(Self.trimmed(rest))
        }
    }

    private static func trimmed(_ element: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        guard let last = element.lastIndex(where: { !isBlank($0) }) else { return [] }
        return element[...last].drop(while: isBlank)
    }

    /// Reserves capacity for the head of a typical response.
    mutating func reserveCapacity() {
        bytes.reserveCapacity(512)
        places.reserveCapacity(16)
    }

    mutating func append(name: some Collection<UInt8>, value: some Collection<UInt8>) {
        let start = bytes.count
        bytes += name
        let middle = bytes.count
        bytes += value
        places.append(Place(name: start, value: middle, end: bytes.count))
    }

    /// Appends a space and the text to the value of the last field. Returns false if there is no field.
    mutating func continueLast(_ text: some Collection<UInt8>) -> Bool {
        guard !places.isEmpty else { return false }
        bytes.append(UInt8(ascii: " "))
        bytes += text
        places[places.endIndex - 1].end = bytes.count
        return true
    }

    private func isNamed(_ name: String, _ place: Place) -> Bool {
        place.value - place.name == name.utf8.count
            && zip(bytes[place.name..<place.value], name.utf8).allSatisfy {
                $0.lowercasedASCII == $1.lowercasedASCII
            }
    }

    /// Decodes a name or value. Bytes that are not valid UTF-8 are decoded as Latin-1, which preserves every byte.
    private func text(_ range: Range<Int>) -> String {
        let bytes = bytes[range]
        return String(validating: bytes, as: UTF8.self)
            ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}

extension StringProtocol {
    /// The elements of a comma-separated list (RFC 9110 §5.6.1), without the spaces and tabs around them. Empty
    /// elements are included.
    var listElements: [String] {
        split(separator: ",", omittingEmptySubsequences: false).map { element in
            let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
            guard let first = element.firstIndex(where: { !isBlank($0) }),
                let last = element.lastIndex(where: { !isBlank($0) })
            else { return "" }
            return String(element[first...last])
        }
    }
}

extension UInt8 {
    /// The byte in lower case. Field names are case-insensitive (RFC 9110 §5.1).
    var lowercasedASCII: UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self | 0x20 : self
    }
}
