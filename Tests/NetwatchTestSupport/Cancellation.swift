/// Waits until the calling task is cancelled.
package func waitForCancellation() async {
    let (never, continuation) = AsyncStream.makeStream(of: Never.self)
    for await _ in never {}
    withExtendedLifetime(continuation) {}
}
