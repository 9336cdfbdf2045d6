package import NetwatchEventLoop

/// A reference to a body in a separate file, with the expected size and digest.
///
/// The store saves this value. It exists only for a file that is complete and durable.
package struct SpooledBody: Hashable, Sendable {
    /// The name of the file in the spool. The spool chooses it.
    package let name: String
    /// The size in bytes.
    package let size: Int64
    package let digest: SHA256Digest

    init(name: String, size: Int64, digest: SHA256Digest) {
        self.name = name
        self.size = size
        self.digest = digest
    }

    /// Creates a value from what the store has saved. Returns `nil` for a name that no spool creates, so that a
    /// manipulated store cannot refer to files elsewhere.
    ///
    /// - Parameter digest: 64 hexadecimal digits.
    package init?(name: String, size: Int64, digest: String) {
        guard SpoolName.isComplete(name), size >= 0, let digest = SHA256Digest(digest) else { return nil }
        self.init(name: name, size: size, digest: digest)
    }
}

/// The reason why a spooled body cannot be sent.
package enum SpooledBodyFault: Error, Hashable, Sendable {
    /// The file does not exist. This is permanent.
    case missing
    /// The content differs from what was accepted; the text describes the difference.
    case changed(String)
    /// The file could not be read, for example because of too many open files or an I/O error. The body itself may be
    /// intact.
    case unreadable(SystemError)
}

extension SpooledBodyFault: CustomStringConvertible {
    /// The reason for users, which also becomes the last error of a dead request.
    package var description: String {
        switch self {
        case .missing: "the body's file is missing"
        case .changed(let how): "the body's file was changed: \(how)"
        case .unreadable(let why): "the body's file cannot be read: \(why)"
        }
    }
}

/// The names of the files in a spool: 32 hexadecimal digits, followed by `.part` until the file is complete.
///
/// The first eight digits identify the spool instance that created the file, and change with every start. So the sweep
/// can distinguish files in progress from files that an earlier run left.
enum SpoolName {
    static let partSuffix = ".part"

    static func randomTag() -> String { digits(of: UInt32.random(in: .min ... .max)) }

    static func random(tag: String) -> String {
        tag + (0..<3).map { _ in randomTag() }.joined()
    }

    static func isComplete(_ name: String) -> Bool {
        let digits = Array("0123456789abcdef".utf8)
        return name.utf8.count == 32 && name.utf8.allSatisfy(digits.contains)
    }

    static func isPart(_ name: String) -> Bool {
        name.hasSuffix(partSuffix) && isComplete(String(name.dropLast(partSuffix.count)))
    }

    private static func digits(of number: UInt32) -> String {
        let text = String(number, radix: 16)
        return String(repeating: "0", count: 8 - text.count) + text
    }
}
