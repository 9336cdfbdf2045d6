package import NetwatchEventLoop

/// A body that is kept as a file of its own: which file, and what has to be in it.
///
/// This is what the store writes down. It exists only for a file that is complete and will be there after a
/// power cut.
package struct SpooledBody: Hashable, Sendable {
    /// The file's name in the spool, which is chosen there.
    package let name: String
    /// How many bytes it has.
    package let size: Int64
    package let digest: SHA256Digest

    init(name: String, size: Int64, digest: SHA256Digest) {
        self.name = name
        self.size = size
        self.digest = digest
    }

    /// What the store has written down; `nil` when no spool can have given it, so that a store that was
    /// tampered with names no file elsewhere.
    ///
    /// - Parameter digest: 64 hexadecimal digits.
    package init?(name: String, size: Int64, digest: String) {
        guard SpoolName.isComplete(name), size >= 0, let digest = SHA256Digest(digest) else { return nil }
        self.init(name: name, size: size, digest: digest)
    }
}

/// Why a spooled body cannot be sent.
package enum SpooledBodyFault: Error, Hashable, Sendable {
    /// Its file is not there. It will not come back.
    case missing
    /// Its file holds something else than was accepted; the text says how.
    case changed(String)
    /// It could not be looked at, which says nothing about the body: too many open files, an I/O error.
    case unreadable(SystemError)
}

extension SpooledBodyFault: CustomStringConvertible {
    /// The reason, for people, as a request is dead of it.
    package var description: String {
        switch self {
        case .missing: "the body's file is missing"
        case .changed(let how): "the body's file was changed: \(how)"
        case .unreadable(let why): "the body's file cannot be read: \(why)"
        }
    }
}

/// The names of the files in a spool: 32 hexadecimal digits, with `.part` behind them until a file is complete.
///
/// The first eight are those of the spool that made the file, which is another one after each start: so the
/// sweep knows what is being made from what was left.
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
