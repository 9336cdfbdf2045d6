internal import Testing

/// A trait that runs each test of a suite twice: with a kernel filter on the event socket, and without it.
struct FilterTrait: SuiteTrait, TestTrait, TestScoping {
    /// Whether monitors in the current test use the filter.
    @TaskLocal static var isFiltered = true

    var isRecursive: Bool { true }

    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        // The scope of a suite is entered once. Only its test cases run twice.
        guard testCase != nil else { return try await function() }
        for isFiltered in [true, false] {
            try await Self.$isFiltered.withValue(isFiltered) { try await function() }
        }
    }
}

extension Trait where Self == FilterTrait {
    /// Runs each test twice: with and without the kernel filter.
    static var withAndWithoutFilter: Self { FilterTrait() }
}
