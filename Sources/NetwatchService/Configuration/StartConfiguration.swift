internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import OfflineQueue

/// The configuration with which the service starts: that of its files and variables, or the last good one.
package struct StartConfiguration: Sendable {
    package var configuration: ServiceConfiguration
    /// Why the files and variables are not used; `nil` if they are.
    package let fallback: ConfigurationFallback?
    var origins: [String: ConfigurationReader.Origin] = [:]

    /// Returns the file with its line, or the variable, that sets a key; `nil` if the default applies.
    package func place(of key: String) -> String? { origins[key]?.place }

    /// Reads the files and variables. If they have a fault, reads the last good configuration instead. Blocks.
    ///
    /// - Parameters:
    ///   - base: The settings that no file and no variable changes.
    ///   - lastGood: The last good configuration; `nil` to use only the files and variables.
    /// - Throws: ``InvalidConfiguration`` with the faults of the files and variables, and those of the last good
    ///   configuration. Faults that may be temporary are not replaced.
    package static func reading(
        _ files: ConfigurationFiles,
        into base: ServiceConfiguration,
        replacedBy lastGood: LastGoodConfiguration?
    ) throws(InvalidConfiguration) -> StartConfiguration {
        do throws(InvalidConfiguration) {
            let result = try files.read(into: base, after: lastGood)
            return StartConfiguration(
                configuration: result.configuration,
                fallback: nil,
                origins: result.origins
            )
        } catch {
            // The group database is also needed for the last good configuration.
            guard let lastGood, !error.isTemporary else { throw error }
            return try lastGood.replacement(for: error, base)
        }
    }
}

/// Why the service uses its last good configuration.
package struct ConfigurationFallback: Hashable, Sendable {
    /// The faults of the files and variables, in the order of a check.
    let faults: [String]
    /// When the last good configuration was stored.
    let kept: Date
    /// The keys without a fault whose values in the files and variables are ignored, because they differ. A key that is
    /// no longer set differs, too.
    let ignoredKeys: [String]

    /// The first fault, the number of the others, and the ignored keys, on one line.
    var summary: String {
        let first = faults.first?.printable(upTo: 1000) ?? ""
        let others = faults.count > 1 ? "; other faults: \(faults.count - 1)" : ""
        let keys = ignoredKeys.map { "`\($0)`" }.joined(separator: ", ")
        return first + others + (keys.isEmpty ? "" : "; other changes that are ignored: \(keys)")
    }
}

extension ConfigurationFiles {
    /// Reads the files and variables. Blocks.
    ///
    /// If the main file is missing, but the last good configuration was read from it, that is a fault: with the defaults,
    /// the service would refuse its users and watch no hosts.
    ///
    /// - Parameters:
    ///   - base: The settings that no file and no variable changes.
    ///   - lastGood: The last good configuration; `nil` to let the main file be missing.
    package func read(
        into base: ServiceConfiguration,
        after lastGood: LastGoodConfiguration?
    ) throws(InvalidConfiguration) -> Result {
        let result = try read(into: base)
        if let loss = lastGood?.lossOfMainFile(result) { throw loss }
        return result
    }
}

extension LastGoodConfiguration {
    /// Returns the fault of a missing main file; `nil` if it exists, or if it also was missing when this configuration
    /// was stored.
    fileprivate func lossOfMainFile(_ result: ConfigurationFiles.Result) -> InvalidConfiguration? {
        guard !result.files.contains(result.path), let content = try? content(),
            content.files.contains(result.path)
        else { return nil }
        var values = result.configuration.values
        values.faultyKeys = nil
        return InvalidConfiguration(
            [problem("the file is missing; an empty file selects the defaults", of: result.path)],
            inOrderOf: [],
            values: values
        )
    }

    /// Returns this configuration.
    ///
    /// - Parameter error: The faults of the files and variables.
    /// - Throws: The faults, if there is no last good configuration; also those of the last good configuration, if
    ///   there are any.
    fileprivate func replacement(
        for error: InvalidConfiguration,
        _ base: ServiceConfiguration
    ) throws(InvalidConfiguration) -> StartConfiguration {
        guard let content = try content(insteadOf: error) else { throw error }
        var reader = ConfigurationReader(base)
        reader.read(path, content.bytes, upTo: Self.longestFile)
        reader.finish()
        guard reader.problems.isEmpty else {
            let own = InvalidConfiguration(reader.problems, inOrderOf: [])
            throw InvalidConfiguration(error, replacement: own)
        }
        var configuration = reader.configuration
        configuration.values = reader.values
        configuration.values.files = content.files
        configuration.values.replaced = error.values.replaced
        let differing = error.values.keys(differingFrom: configuration.values)
        let fallback = ConfigurationFallback(
            faults: error.problems.map(\.description),
            kept: content.kept,
            ignoredKeys: differing.filter(error.values.isKnown)
        )
        return StartConfiguration(configuration: configuration, fallback: fallback, origins: reader.origins)
    }

    private func content(insteadOf error: InvalidConfiguration) throws(InvalidConfiguration) -> Content? {
        do throws(Damage) {
            return try content()
        } catch let damage {
            let own = InvalidConfiguration([problem("\(damage)", of: path)], inOrderOf: [])
            throw InvalidConfiguration(error, replacement: own)
        }
    }

    private func problem(_ message: String, of file: String) -> ConfigurationProblem {
        ConfigurationProblem(source: file, line: 0, column: 0, message: message)
    }
}

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
