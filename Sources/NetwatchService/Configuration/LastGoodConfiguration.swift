internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import OfflineQueue

/// The file with the configuration with which the service last started or reloaded. The service starts with it if it
/// cannot use its configuration files and variables.
///
/// The file is in the state directory, and only the user of the service can read it. It contains the values of all
/// files and variables as one TOML document, because a copy of several files could not be replaced at once. Secrets are
/// not part of it: a configuration contains only the names of credentials.
package struct LastGoodConfiguration: Sendable {
    /// The maximum size: 16 MiB. All drop-ins together may be larger than one file.
    static let longestFile = 16 << 20

    package let path: String

    /// - Parameter directory: The state directory of the service.
    package init(stateDirectory directory: String) { path = "\(directory)/last-good.toml" }

    /// What the file contains.
    struct Content: Sendable {
        let bytes: [UInt8]
        /// The files from which the values were read.
        let files: [String]
        /// When the file was written.
        let kept: Date
    }

    /// The reason why the file cannot be used.
    struct Damage: Error, Hashable, CustomStringConvertible {
        let description: String
    }

    /// Reads the file. Blocks.
    ///
    /// - Returns: `nil` if there is no file.
    func content() throws(Damage) -> Content? {
        let file: PrivateFile.Content
        do throws(SystemError) {
            guard let found = try PrivateFile.read(path, upTo: Self.longestFile) else { return nil }
            file = found
        } catch {
            let reason = errnoDescription(error.errno)
            throw Damage(description: "the last good configuration cannot be read: \(reason)")
        }
        guard let files = Self.files(in: file.bytes) else {
            throw Damage(description: "the last good configuration is damaged: it does not match its SHA-256")
        }
        return Content(
            bytes: file.bytes,
            files: files,
            kept: Date(timeIntervalSince1970: Double(file.modified))
        )
    }

    /// Writes the file, unless it has these values already. Moves a damaged file to `last-good.toml.damaged`. Blocks.
    ///
    /// - Returns: The damage of a file that was moved; `nil` if none was.
    /// - Throws: ``SystemError``: also `EFBIG` if the values exceed ``longestFile``. The earlier file then remains.
    func keep(_ values: ConfigurationValues) throws(SystemError) -> Damage? {
        let bytes = try Self.bytes(of: values)
        guard bytes.count <= Self.longestFile else { throw SystemError(call: "write \(path)", errno: EFBIG) }
        var damage: Damage?
        do throws(Damage) {
            if try content()?.bytes == bytes { return nil }
        } catch {
            damage = error
        }
        if damage != nil { try systemCall("rename \(path)") { rename(path, "\(path).damaged") } }
        try PrivateFile.replace(path, with: bytes, isDurable: true)
        return damage
    }
}

// MARK: - The format

extension LastGoodConfiguration {
    private static let digestMark = "## sha256 "
    private static let filesMark = "## files "
    private static let explanation = """
        ## `netwatch serve` wrote this file: the configuration with which it last started or reloaded. It starts with
        ## this configuration if it cannot use the files above. It refuses the file if a line was changed.

        """

    /// Returns the content of the file. The first line has the digest of the lines after it, because damage may leave
    /// valid TOML.
    private static func bytes(of values: ConfigurationValues) throws(SystemError) -> [UInt8] {
        let files = values.files.map(TOMLNode.Value.quoted).joined(separator: ", ")
        let lines = Array("\(filesMark)[\(files)]\n\(explanation)\(values.document)".utf8)
        return try Array("\(digestMark)\(SHA256Digest(of: lines))\n".utf8) + lines
    }

    /// Returns the files from which the values were read; `nil` if the content is damaged.
    private static func files(in bytes: [UInt8]) -> [String]? {
        let newline = UInt8(ascii: "\n")
        let parts = bytes.split(separator: newline, maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].starts(with: digestMark.utf8),
            let expected = SHA256Digest(text(parts[0].dropFirst(digestMark.utf8.count))),
            let digest = try? SHA256Digest(of: Array(parts[1])), digest == expected
        else { return nil }
        let list = parts[1].prefix { $0 != newline }.dropFirst(filesMark.utf8.count)
        let document = try? TOMLNode.parse(Array("files = \(text(list))".utf8))
        guard case .table(let entries)? = document?.value else { return [] }
        return entries.first?.node.value.texts ?? []
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }
}
