import Dispatch
import Testing

/// The entry point of the tests, which all use Swift Testing. Without this file, SwiftPM would also look for tests of
/// XCTest, and each build would have to write an index for that search.
///
/// It is not asynchronous, because the bundle also contains the asynchronous entry point of ClientTestProcess. Both
/// modules would define `async_Main`, and in an optimized build the linker chose the other one.
@main enum TestRunner {
    static func main() {
        // `swift test` asks for each library's tests in turn.
        guard !CommandLine.arguments.contains("xctest") else { return }
        Task { await Testing.__swiftPMEntryPoint() as Never }
        dispatchMain()
    }
}
