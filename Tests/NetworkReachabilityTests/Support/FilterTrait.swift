internal import Testing

/// Runs each test of a suite twice: with the kernel's filter on the event socket, and without it.
struct FilterTrait: SuiteTrait, TestTrait, TestScoping {
    /// Whether monitors in the current test use the filter.
    @TaskLocal static var isFiltered = true

    var isRecursive: Bool { true }

    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        // Only test cases run twice; the scope of a suite runs once.
        guard testCase != nil else { return try await function() }
        for isFiltered in [true, false] {
            try await Self.$isFiltered.withValue(isFiltered) { try await function() }
        }
    }
}

extension Trait where Self == FilterTrait {
    /// Runs each test with and without the kernel filter.
    static var withAndWithoutFilter: Self { FilterTrait() }
}
