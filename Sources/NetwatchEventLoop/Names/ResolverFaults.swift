/// The faults that tests inject, to show that the tests would detect them.
package struct ResolverFaults: Sendable {
    /// Whether lookups of slow names may use all threads.
    package var ignoresSlowNames = false
    /// Whether a question stays in the queue after all its callers have abandoned it.
    package var keepsAbandonedLookups = false

    package init() {}
}
