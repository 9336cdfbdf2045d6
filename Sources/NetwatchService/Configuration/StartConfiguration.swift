internal import Foundation
internal import NetwatchEventLoop

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
