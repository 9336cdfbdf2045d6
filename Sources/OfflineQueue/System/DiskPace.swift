/// The pace of background work that reads much from the disk.
///
/// The work rests after each read, so that it takes at most a tenth of the disk's time, or a fifth while a read takes more
/// than 7 s, and a commit waits for one read at most.
package struct DiskPace: Hashable, Sendable {
    /// The rest as a multiple of the duration of the read before it: 9.
    package var factor = 9
    /// The minimum rest: 50 ms. It limits the processor time for reads from the kernel's cache.
    package var shortest: Duration = .milliseconds(50)
    /// The maximum rest: 60 s. A read that a suspension of the machine interrupts seems to take hours.
    package var longest: Duration = .seconds(60)

    package init() {}

    /// Returns how long to rest after a read.
    func rest(after read: Duration) -> Duration {
        max(shortest, min(read * factor, longest))
    }

    /// Rests after a read that began at `start` and has ended now.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    func rest(since start: ContinuousClock.Instant) async throws {
        try await Task.sleep(for: rest(after: ContinuousClock.now - start), clock: .continuous)
    }
}
