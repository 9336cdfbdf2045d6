/// Faults that tests inject, to show that they would be noticed.
package struct ResolverFaults: Sendable {
    /// Names that were silent are not limited to a part of the threads.
    package var forgetsSilence = false
    /// A question stays in the queue after all callers abandoned it.
    package var keepsAbandoned = false

    package init() {}
}
