/// A call of a closure that is isolated to an actor. The actor's executor makes the call.
///
/// `assumeIsolated` does the same, but allocates two closure contexts for each call and looks up the current executor. A
/// call that an executor makes for its own actor needs neither.
package struct IsolatedCall: Sendable {
    private let actor: any Actor
    private let body: @Sendable (AnyObject) -> Void

    package init<Isolation: Actor>(
        _ actor: Isolation,
        _ body: @escaping @Sendable (isolated Isolation) -> Void
    ) {
        self.actor = actor
        // Functions with an isolated parameter have the calling convention of other functions, which `assumeIsolated`
        // relies on as well, and a reference to an actor is passed like a reference to any object. The structures
        // prevent the conversion of the closure to its most general form, which would allocate.
        self.body = unsafeBitCast(Isolated(body: body), to: Erased.self).body
    }

    /// Calls the closure. Must be called on the actor's executor, which is checked in debug builds.
    package func callAsFunction() {
        assert(isOnExecutor)
        body(actor)
    }

    /// Ends the process if the caller does not run on the actor's executor. `assertIsolated` would also look up the
    /// executor in release builds.
    private var isOnExecutor: Bool {
        actor.preconditionIsolated()
        return true
    }
}

private struct Isolated<Isolation: Actor> {
    let body: @Sendable (isolated Isolation) -> Void
}

private struct Erased {
    let body: @Sendable (AnyObject) -> Void
}
