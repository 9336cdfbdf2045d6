internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// The C compiler of the system.
enum SystemCompiler {
    private static let path = "/usr/bin/cc"
    static let isInstalled = FileManager.default.isExecutableFile(atPath: path)

    /// Compiles a library whose functions replace those of other libraries in a process that preloads it (`LD_PRELOAD`).
    ///
    /// - Returns: The path of the library.
    static func library(_ source: String, in directory: ScratchDirectory) async throws -> String {
        let file = try directory.write(Array(source.utf8), to: "preloaded.c")
        let path = directory.file("preloaded.so")
        let arguments = ["-shared", "-fPIC", "-o", path, file, "-ldl"]
        let outcome = try await Subprocess(Self.path, arguments).outcome()
        try #require(outcome.ending == .exited(0), "\(outcome.errors)")
        return path
    }
}
