import Testing

/// The entry point of the tests. All of them are of Swift Testing; without this file SwiftPM would look for those of
/// XCTest, in an index that every build would have to write.
@main enum TestRunner {
    static func main() async {
        // `swift test` asks for each library's tests in turn.
        guard !CommandLine.arguments.contains("xctest") else { return }
        await Testing.__swiftPMEntryPoint() as Never
    }
}
