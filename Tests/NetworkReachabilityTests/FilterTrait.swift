internal import Testing

/// Runs each test of a suite twice: with the kernel's filter on the event socket, and without it.
struct FilterTrait: SuiteTrait, TestTrait, TestScoping {
    /// Whether the monitors of the test at hand filter.
    @TaskLocal static var isFiltered = true

    var isRecursive: Bool { true }

    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        // A suite is only run through; what is run twice are its tests.
        guard testCase != nil else { return try await function() }
        for isFiltered in [true, false] {
            try await Self.$isFiltered.withValue(isFiltered) { try await function() }
        }
    }
}

extension Trait where Self == FilterTrait {
    /// With the kernel's filter, and without it.
    static var filteredAndNot: Self { FilterTrait() }
}
