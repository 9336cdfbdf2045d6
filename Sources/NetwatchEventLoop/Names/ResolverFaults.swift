/// Faults that tests inject, to show that they would be noticed.
package struct ResolverFaults: Sendable {
    /// Names that were slow are not limited to a part of the threads.
    package var ignoresSlowNames = false
    /// A question stays in the queue after all callers abandoned it.
    package var keepsAbandonedLookups = false

    package init() {}
}
