public import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// Reads credential files: only regular files, and only up to a size limit.
enum CredentialFile {
    /// The size limit of certificates and keys in bytes. 1 MiB is enough for a file with hundreds of certificates.
    static let limit = 1 << 20
    /// The size limit of revocation lists in bytes: 64 MiB. The largest lists in public use have about 10 MB.
    static let revocationListLimit = 64 << 20
    private static let chunkSize = 64 * 1024

    /// Reads a file, up to one byte more than the limit. ``check(_:as:limit:)`` then rejects data that is too large.
    ///
    /// - Throws: ``InvalidCredential`` with ``InvalidCredential/Reason/unreadable(errno:)``.
    static func read(
        _ url: URL,
        as kind: InvalidCredential.Kind,
        limit: Int = limit
    ) throws(InvalidCredential) -> Data {
        do throws(SystemError) {
            return try read(try url.localPath(), atMost: limit + 1)
        } catch {
            throw InvalidCredential(kind, .unreadable(errno: error.errno), file: url.path)
        }
    }

    /// - Throws: ``InvalidCredential`` if the data is empty or larger than the limit.
    static func check(
        _ data: Data,
        as kind: InvalidCredential.Kind,
        limit: Int = limit
    ) throws(InvalidCredential) {
        if data.isEmpty { throw InvalidCredential(kind, .empty) }
        if data.count > limit { throw InvalidCredential(kind, .tooLarge(limit: limit)) }
    }

    private static func read(_ path: String, atMost most: Int) throws(SystemError) -> Data {
        // With O_NONBLOCK, opening a FIFO does not block until the FIFO has a writer.
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK
        let file = FileDescriptor(owning: try systemCall("open \(path)") { open(path, flags) })
        let descriptor = file.rawValue
        var status = stat()
        try systemCall("fstat \(path)") { fstat(descriptor, &status) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            let isDirectory = status.st_mode & S_IFMT == S_IFDIR
            throw SystemError(call: "open \(path)", errno: isDirectory ? EISDIR : EINVAL)
        }
        return try read(descriptor, atMost: most)
    }

    /// Reads up to the end of the file or the limit. The size that `fstat` reports is not used, because a file may
    /// grow, and files in `/proc` report 0.
    private static func read(_ descriptor: CInt, atMost most: Int) throws(SystemError) -> Data {
        var data = Data()
        while data.count < most {
            var chunk = [UInt8](repeating: 0, count: min(chunkSize, most - data.count))
            let capacity = chunk.count
            let got = try systemCall("read") { Glibc.read(descriptor, &chunk, capacity) }
            if got == 0 { break }
            data += chunk[..<got]
        }
        return data
    }
}

/// The error for a certificate, key, identity or revocation list that cannot be created from a file or data.
public struct InvalidCredential: Error, Hashable, Sendable {
    /// The kinds of credentials.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// An X.509 certificate (RFC 5280).
        case certificate
        /// A public key without a certificate.
        case publicKey = "public key"
        /// A private key.
        case privateKey = "private key"
        /// A client's certificate with its private key.
        case identity = "PKCS#12 archive"
        /// A list of revoked certificates (RFC 5280 §5).
        case revocationList = "list of revoked certificates"
    }

    /// The reasons why a credential cannot be created.
    public enum Reason: Hashable, Sendable {
        /// The file cannot be read. The value is the system's error number, see `errno(3)`.
        case unreadable(errno: Int32)
        /// The data is empty.
        case empty
        /// The data is larger than the limit. The value is the limit in bytes.
        case tooLarge(limit: Int)
        /// The data is neither PEM nor DER of the expected kind, is damaged, or has trailing bytes.
        case unparseable
        /// The data is PEM without a block of the expected kind, or a PKCS#12 archive without a key or without the
        /// key's certificate. The value contains the labels of the PEM blocks, at most eight.
        case notFound(labels: [String])
        /// The key or the archive is encrypted, and no passphrase was given.
        case passphraseMissing
        /// The passphrase does not decrypt the key or the archive.
        case passphraseWrong
        /// The PKCS#12 archive has no digest (MAC). Without a digest, the passphrase cannot be checked, and anyone may
        /// have created the archive.
        case digestMissing
        /// The key does not belong to the certificate.
        case keyMismatch
        /// The installed OpenSSL does not support the algorithm of the key or of its encryption.
        case unsupported
    }

    /// The path of the file; `nil` for data in memory.
    public let file: String?
    /// The kind of credential that was expected.
    public let kind: Kind
    /// The reason for the error.
    public let reason: Reason

    init(_ kind: Kind, _ reason: Reason, file: String? = nil) {
        self.file = file
        self.kind = kind
        self.reason = reason
    }

    func naming(_ file: String?) -> InvalidCredential {
        InvalidCredential(kind, reason, file: self.file ?? file)
    }
}

extension InvalidCredential: LocalizedError, CustomStringConvertible {
    /// The file, the error, and the accepted formats.
    public var description: String { "\(file.map { "`\($0)`" } ?? "the data") \(message)" }

    /// The same as ``description``.
    public var errorDescription: String? { description }

    private var message: String {
        switch reason {
        case .unreadable(let errno): "cannot be read: \(errnoDescription(errno))"
        case .empty: "is empty; \(kind.accepted) is accepted"
        case .tooLarge(let limit): "has more than \(limit) bytes, the maximum for a \(kind.rawValue)"
        case .unparseable: "is not a \(kind.rawValue), or is damaged; \(kind.accepted) is accepted"
        case .notFound(let labels):
            "contains \(Self.list(labels)) but no \(kind.rawValue); \(kind.accepted) is accepted"
        case .passphraseMissing: "contains an encrypted \(kind.rawValue); pass its passphrase"
        case .passphraseWrong: "contains a \(kind.rawValue) that the passphrase does not decrypt"
        case .digestMissing:
            "is a \(kind.rawValue) without a digest (MAC), so its origin cannot be verified; create it with a digest"
        case .keyMismatch: "contains a private key that does not belong to the certificate"
        case .unsupported: "contains a \(kind.rawValue) with an algorithm that OpenSSL does not support"
        }
    }

    private static func list(_ labels: [String]) -> String {
        labels.isEmpty ? "other items" : labels.map { "`\($0)`" }.joined(separator: ", ")
    }
}

extension InvalidCredential.Kind {
    fileprivate var accepted: String {
        switch self {
        case .certificate: "PEM (`-----BEGIN CERTIFICATE-----`) or DER"
        case .publicKey: "PEM (`-----BEGIN PUBLIC KEY-----`) or DER (SubjectPublicKeyInfo), or a certificate"
        case .privateKey: "PEM (`-----BEGIN PRIVATE KEY-----` or similar) or DER"
        case .identity: "PKCS#12, or a certificate and a key in PEM or DER"
        case .revocationList: "PEM (`-----BEGIN X509 CRL-----`) or DER"
        }
    }
}

/// A PEM block (RFC 7468): base64 between a BEGIN and an END line with the same label.
struct PEMBlock: Equatable {
    /// The label of the BEGIN line, such as `CERTIFICATE` or `PRIVATE KEY`.
    let label: String
    /// The whole block with its BEGIN and END lines. A private key is passed to OpenSSL as this text, because an
    /// encrypted key can have header fields after the BEGIN line.
    let text: Data
    /// The decoded base64; `nil` if the block contains anything else. For example, an encrypted key in a format older
    /// than PKCS#8 also contains header fields.
    let contents: Data?
}

/// Parses and writes PEM (RFC 7468).
enum PEM {
    private static let begin = Data("-----BEGIN ".utf8)
    private static let end = Data("-----END ".utf8)
    private static let dashes = Data("-----".utf8)
    /// The maximum length of a label in bytes. No standard has longer ones.
    private static let longestLabel = 64

    /// Returns whether the data contains a BEGIN line. Data without one is treated as DER.
    static func looksLike(_ data: Data) -> Bool { data.range(of: begin) != nil }

    /// Returns the blocks in the order of the data. Text between blocks is ignored.
    ///
    /// - Returns: `nil` if a block has no END line with the same label.
    static func blocks(in data: Data) -> [PEMBlock]? {
        var blocks: [PEMBlock] = []
        var rest = data[...]
        while let start = rest.range(of: begin) {
            guard let block = block(in: rest[start.lowerBound...]) else { return nil }
            blocks.append(block)
            rest = rest[block.text.endIndex...]
        }
        return blocks
    }

    /// Returns the block at the start of the text.
    private static func block(in text: Data) -> PEMBlock? {
        let afterBegin = text[(text.startIndex + begin.count)...]
        // The search is limited to the maximum length of a label. Without the limit, data with many BEGIN lines that
        // lack their closing dashes would take quadratic time.
        guard let labelEnd = afterBegin.prefix(longestLabel + dashes.count).range(of: dashes) else {
            return nil
        }
        let label = afterBegin[..<labelEnd.lowerBound]
        guard let end = text.range(of: end + label + dashes) else { return nil }
        return PEMBlock(
            label: String(decoding: label, as: UTF8.self),
            text: text[..<end.upperBound],
            contents: decoded(text[labelEnd.upperBound..<end.lowerBound])
        )
    }

    private static func decoded(_ base64: Data) -> Data? {
        let lines = base64.filter { !isSpace($0) }
        return lines.isEmpty ? nil : Data(base64Encoded: Data(lines))
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0d).contains(byte) }

    /// Returns a PEM block with the given contents. It ends with a line break, so that blocks can be concatenated.
    static func encoded(_ der: Data, label: String) -> [UInt8] {
        let base64 = der.base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
        return Array("-----BEGIN \(label)-----\n\(base64)\n-----END \(label)-----\n".utf8)
    }
}
