/// Ways to break a resolver, for tests that show that such a break would be noticed.
package struct ResolverFaults: Sendable {
    /// Names that were silent get threads like all others.
    package var forgetsSilence = false
    /// A question that all askers gave up stays in the queue.
    package var keepsAbandoned = false

    package init() {}
}
