package import Foundation
package import NetwatchEventLoop

/// A reference to a body in a spool file, with the size and digest that the file must have.
///
/// The store saves this value in the request's row. The spool returns it only for a file that is complete and durable.
package struct SpooledBody: Hashable, Sendable {
    /// The name of the file in the spool's directory, chosen by the spool.
    package let name: String
    /// The size in bytes.
    package let size: Int64
    package let digest: SHA256Digest
    /// The key of the file, encrypted with a key of the queue; `nil` if the file is not encrypted.
    package let sealedKey: Data?

    init(name: String, size: Int64, digest: SHA256Digest, sealedKey: Data? = nil) {
        self.name = name
        self.size = size
        self.digest = digest
        self.sealedKey = sealedKey
    }

    /// Creates a value from the columns of a row. Returns `nil` if a value is invalid. A name that a spool never
    /// creates is invalid, so that a manipulated database cannot refer to files elsewhere.
    package init?(row name: String, size: Int64, digest: SHA256Digest?, sealedKey: Data? = nil) {
        guard SpoolName.isComplete(name), size >= 0, let digest else { return nil }
        self.init(name: name, size: size, digest: digest, sealedKey: sealedKey)
    }
}

/// The reason why a spooled body cannot be sent.
package enum SpooledBodyFault: Error, Hashable, Sendable {
    /// The file does not exist. This fault is permanent.
    case missing
    /// The file differs from the accepted body; the text describes the difference. This fault is permanent.
    case changed(String)
    /// The file could not be read, for example because too many files are open or because of an I/O error. This fault
    /// may be temporary.
    case unreadable(SystemError)
}

extension SpooledBodyFault: CustomStringConvertible {
    /// The message for users. It also becomes the last error of a request that is dead because of the fault.
    package var description: String {
        switch self {
        case .missing: "the queue's copy of the body is missing"
        case .changed(let how): "the queue's copy of the body was changed: \(how)"
        case .unreadable(let why): "the queue's copy of the body cannot be read: \(why)"
        }
    }
}

/// The names of the files in a spool: 32 hexadecimal digits. The name of an incomplete file also has the suffix
/// `.part`.
///
/// The first eight digits are the tag of the `BodySpool` instance that created the file, and differ in each run. By the
/// tag, ``BodySpool/sweep(keeping:)`` distinguishes the current run's files from those that an earlier run left.
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
