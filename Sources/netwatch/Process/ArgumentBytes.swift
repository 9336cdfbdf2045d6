internal import ArgumentParser
internal import NetwatchTransport

/// The value of an option that can be any bytes, such as a body or the name of a file.
///
/// The parser passes arguments as text. ``Arguments/exact()`` therefore represents them as ``ExactText``.
struct ArgumentBytes: ExpressibleByArgument, Hashable, CustomStringConvertible {
    /// The name of a file that stands for standard input.
    static let standardInput = ArgumentBytes(argument: "-")

    let bytes: [UInt8]

    init(_ bytes: some Sequence<UInt8>) {
        self.bytes = Array(bytes)
    }

    init(argument: String) {
        bytes = ExactText.encode(argument)
    }

    /// The bytes as ``ExactText``.
    var exactText: String { ExactText.decode(bytes) }

    /// The bytes as text; `nil` if they are not UTF-8.
    var text: String? { String(validating: bytes, as: UTF8.self) }

    /// The bytes for people: UTF-8 as text, and each other byte as `\xNN`.
    var description: String {
        var (text, rest) = (String.UnicodeScalarView(), bytes[...])
        var (parser, source) = (Unicode.UTF8.ForwardParser(), bytes.makeIterator())
        while true {
            switch parser.parseScalar(from: &source) {
            case .valid(let encoded):
                text.append(Unicode.UTF8.decode(encoded))
                rest = rest.dropFirst(encoded.count)
            case .error(let length):
                // A byte that is not UTF-8 is at least 0x80, so it has two digits.
                for byte in rest.prefix(length) {
                    text.append(contentsOf: "\\x\(String(byte, radix: 16))".unicodeScalars)
                }
                rest = rest.dropFirst(length)
            case .emptyInput: return String(text)
            }
        }
    }

    /// Returns a message for people. Parts of it may be arguments, as ``ExactText``.
    static func printable(_ message: String) -> String {
        ExactText.hasEscapes(message) ? ArgumentBytes(argument: message).description : message
    }

    /// The bytes and a zero byte, for functions that take a path as a pointer.
    var cString: [CChar] { bytes.map(CChar.init(bitPattern:)) + [0] }
}
