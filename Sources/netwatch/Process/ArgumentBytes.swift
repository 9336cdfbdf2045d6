internal import ArgumentParser
internal import NetwatchEventLoop
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

    /// The bytes for people: UTF-8 as text; bytes that are not UTF-8, and those of characters that are not
    /// printable, as `\xNN`.
    var description: String {
        var (text, rest) = (String.UnicodeScalarView(), bytes[...])
        var (parser, source) = (Unicode.UTF8.ForwardParser(), bytes.makeIterator())
        while true {
            let length: Int
            switch parser.parseScalar(from: &source) {
            case .valid(let encoded):
                length = encoded.count
                let scalar = Unicode.UTF8.decode(encoded)
                text.append(
                    contentsOf: scalar.isPrintable ? [scalar] : Self.hexadecimal(rest.prefix(length))
                )
            case .error(let count):
                length = count
                text.append(contentsOf: Self.hexadecimal(rest.prefix(length)))
            case .emptyInput: return String(text)
            }
            rest = rest.dropFirst(length)
        }
    }

    private static func hexadecimal(_ bytes: ArraySlice<UInt8>) -> [Unicode.Scalar] {
        bytes.flatMap { byte in
            Array("\\x\(byte < 0x10 ? "0" : "")\(String(byte, radix: 16))".unicodeScalars)
        }
    }

    /// Returns a message for people. Parts of it may be arguments, as ``ExactText``.
    static func printable(_ message: String) -> String {
        guard ExactText.hasEscapes(message) else { return message }
        var (text, rest) = ("", message.unicodeScalars[...])
        while let first = rest.first {
            let isEscape = ExactText.hasEscapes(String(first))
            let part = rest.prefix { ExactText.hasEscapes(String($0)) == isEscape }
            text += isEscape ? ArgumentBytes(argument: String(part)).description : String(part)
            rest = rest.dropFirst(part.count)
        }
        return text
    }

    /// The bytes and a zero byte, for functions that take a path as a pointer.
    var cString: [CChar] { bytes.map(CChar.init(bitPattern:)) + [0] }
}
