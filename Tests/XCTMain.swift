import Testing

/// The entry point of the tests, which all use Swift Testing. Without this file, SwiftPM would also look for tests of
/// XCTest, and each build would have to write an index for that search.
@main enum TestRunner {
    static func main() async {
        // `swift test` asks for each library's tests in turn.
        guard !CommandLine.arguments.contains("xctest") else { return }
        await Testing.__swiftPMEntryPoint() as Never
    }
}
