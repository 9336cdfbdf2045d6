internal import NetwatchEventLoop
internal import NetwatchTestSupport

/// A gate that blocks the threads of a resolver until the test opens it.
final class LookupGate: Sendable {
    private let entered: AsyncStream<Void>
    private let enter: AsyncStream<Void>.Continuation
    private let gate = Gate()

    init() {
        (entered, enter) = AsyncStream.makeStream()
    }

    /// A resolver whose lookups wait for the gate and then return 127.0.0.1.
    var resolver: NameResolver {
        NameResolver(lookUp: lookUp)
    }

    @Sendable func lookUp(_ name: String) -> NameResolver.Outcome {
        enter.yield()
        gate.wait()
        // Each lookup lets the next one pass.
        gate.open()
        return .success([IPAddress("127.0.0.1")!])
    }

    /// Waits until a lookup has reached the gate.
    func isEntered() async {
        for await _ in entered { return }
    }

    /// Opens the gate for all lookups.
    func open() { gate.open() }
}
