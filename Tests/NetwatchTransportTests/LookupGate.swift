internal import Glibc
internal import NetwatchEventLoop

/// A gate that blocks the threads of a resolver until the test opens it.
final class LookupGate: Sendable {
    private let entered: AsyncStream<Void>
    private let enter: AsyncStream<Void>.Continuation
    private let input: CInt
    private let output: CInt

    init() {
        var ends: [CInt] = [0, 0]
        precondition(pipe(&ends) == 0)
        (input, output) = (ends[0], ends[1])
        (entered, enter) = AsyncStream.makeStream()
    }

    deinit { close(input) }

    /// A resolver whose lookups wait for the gate and then return 127.0.0.1.
    var resolver: NameResolver {
        NameResolver(lookUp: lookUp)
    }

    @Sendable func lookUp(_ name: String) -> NameResolver.Outcome {
        enter.yield()
        var byte: UInt8 = 0
        _ = read(input, &byte, 1)
        return .success([IPAddress("127.0.0.1")!])
    }

    /// Waits until a lookup has reached the gate.
    func isEntered() async {
        for await _ in entered { return }
    }

    /// Opens the gate for all lookups. Must be called only once.
    func open() { close(output) }
}
