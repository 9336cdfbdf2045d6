internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// The configuration of the service in TOML files: a main file, and the files `*.toml` in the directory
/// `<main file>.d`, in the order of their names. The environment variables of the keys replace their values.
package struct ConfigurationFiles: Sendable {
    /// The main file of the system's service.
    package static let systemFile = "/etc/netwatch/netwatch.toml"
    /// The maximum size of a file: 1 MiB.
    package static let longestFile = 1 << 20

    /// The path of the main file.
    package let path: String
    /// Whether the main file must exist, because the user named it.
    let isRequired: Bool
    private let environment: [String: String]

    /// - Parameters:
    ///   - path: The path of the main file that the user named; `nil` if the user named none.
    ///   - defaultPath: The path of the main file if the user named none. This file may be missing.
    ///   - environment: The environment variables. Default: none.
    package init(
        path: String?,
        default defaultPath: String = Self.systemFile,
        environment: [String: String] = [:]
    ) {
        self.environment = environment
        self.path = path ?? defaultPath
        isRequired = path != nil
    }

    /// The effective configuration.
    package struct Result: Sendable {
        package let configuration: ServiceConfiguration
        /// The path of the main file, which may be missing.
        package let path: String
        /// The files that were read.
        package let files: [String]
        /// The environment variables that were read, in the order of their names.
        package var variables: [String] {
            origins.values.filter { $0.position == nil }.map(\.source).sorted()
        }
        let origins: [String: ConfigurationReader.Origin]
        let tables: [ConfigurationReader.ArrayTable]
    }

    /// Reads the files and the environment variables.
    ///
    /// - Parameter base: The settings that no file and no variable changes.
    /// - Throws: ``InvalidConfiguration`` with all faults.
    package func read(into base: ServiceConfiguration) throws(InvalidConfiguration) -> Result {
        var reader = ConfigurationReader(base)
        var files: [String] = []
        var unreadable: [ConfigurationProblem] = []
        let candidates = candidates(&unreadable)
        for (file, isRequired) in candidates {
            do throws(SystemError) {
                reader.read(file, try Self.content(of: file))
                files.append(file)
            } catch {
                if error.errno == ENOENT, !isRequired { continue }
                unreadable.append(Self.problem(file, error))
            }
        }
        reader.read(environment: environment)
        reader.finish()
        var values = reader.values
        values.files = files
        if !unreadable.isEmpty { values.faultyKeys = nil }
        let problems = unreadable + reader.problems
        guard problems.isEmpty else {
            let sources = candidates.map(\.0) + SettingTable.settings.map(\.variable)
            throw InvalidConfiguration(problems, inOrderOf: sources, values: values)
        }
        var configuration = reader.configuration
        configuration.values = values
        return Result(
            configuration: configuration,
            path: path,
            files: files,
            origins: reader.origins,
            tables: reader.tables
        )
    }

    private func candidates(_ problems: inout [ConfigurationProblem]) -> [(String, isRequired: Bool)] {
        let directory = path + ".d"
        let names: [String]
        if access(directory, F_OK) == -1, errno == ENOENT {
            names = []
        } else if let found = try? FileManager.default.contentsOfDirectory(atPath: directory) {
            names = found
        } else {
            names = []
            let error = SystemError(call: "opendir", errno: errno)
            problems.append(Self.problem(directory, error))
        }
        let dropIns = names.filter { $0.hasSuffix(".toml") && !$0.hasPrefix(".") }
        // Sorted by the bytes of the names, so that the order does not depend on the locale.
        let sorted = dropIns.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        return [(path, isRequired)] + sorted.map { ("\(directory)/\($0)", true) }
    }

    /// Reads a file, but not much more than ``longestFile``.
    private static func content(of path: String) throws(SystemError) -> [UInt8] {
        let file = try FileDescriptor.opening(path)
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        while bytes.count <= longestFile {
            let count = try systemCall("read") { Glibc.read(file.rawValue, &piece, piece.count) }
            if count == 0 { break }
            bytes += piece.prefix(count)
        }
        return bytes
    }

    private static func problem(_ file: String, _ error: SystemError) -> ConfigurationProblem {
        let text = String(cString: strerror(error.errno))
        return ConfigurationProblem(
            source: file,
            line: 0,
            column: 0,
            message: "the file cannot be read: \(text)"
        )
    }
}
