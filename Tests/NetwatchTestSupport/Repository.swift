internal import Foundation

/// The files of this repository, for tests that compare the documentation with the sources. Paths begin at the root of
/// the repository, such as `docs/commands.md`.
package enum Repository {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// Returns the absolute path of a file.
    package static func path(_ path: String) -> String { root.appending(path: path).path }

    package static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    /// Returns the paths of all Swift files in a folder and its subfolders.
    package static func swiftFiles(in folder: String) throws -> [String] {
        try files(in: folder, suffix: ".swift")
    }

    /// Returns the sorted paths of all files in a folder and its subfolders whose names end with `suffix`.
    package static func files(in folder: String, suffix: String) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: root.appending(path: folder).path)
            .filter { $0.hasSuffix(suffix) }.map { "\(folder)/\($0)" }.sorted()
    }
}
