internal import Testing

/// A program that some tests use, and that may be missing.
package enum TestProgram {
    /// Returns the path of a program. Skips the current test if the program is neither installed nor can be downloaded.
    ///
    /// - Parameter name: A name that scripts/find-program knows, such as `nginx`.
    package static func path(_ name: String) async throws -> String {
        let found = try await Subprocess(Repository.path("scripts/find-program"), [name]).outcome()
        guard found.ending == .exited(0), let path = found.output.last else {
            try Test.cancel("needs \(name): \(found.errors.joined(separator: " "))")
        }
        return path
    }
}
