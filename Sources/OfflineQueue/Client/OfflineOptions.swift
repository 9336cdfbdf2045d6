/// Decides which failed requests a queue takes over from a session, and how it stores them.
///
/// A failed request is always taken over if the server cannot have acted on it:
///
/// - There was no network, or the name has no address.
/// - The connection or the TLS handshake failed or timed out. A certificate that is not trusted does not count.
/// - This machine was short of descriptors, memory, threads or ports.
/// - The server stated that it did not process the request.
///
/// It is not taken over if a server has received an earlier attempt, or has redirected the request, unless the request
/// may be sent twice.
public struct OfflineOptions: Hashable, Sendable {
    /// The options with which requests are stored. ``EnqueueOptions/id`` must be `nil` in options for several requests.
    public var enqueue: EnqueueOptions
    /// The response statuses that are failures too, if a validator rejects them; for example `[500...599]`. Default:
    /// none. Apart from 408, 421, 425 and 429, they count only for requests that may be sent twice.
    public var statuses: [ClosedRange<Int>] = []
    /// Whether the queue also takes over a request that the server may have acted on, for example after a lost
    /// connection. Default `false`. This applies only to requests that may be sent twice: requests with an idempotent
    /// method (RFC 9110 §9.2.2) and requests that were sent with an idempotency key.
    public var includesAmbiguousFailures = false
    /// Whether the queue still sends a request that the program cancels after it was stored. Default `false`. A request
    /// that is cancelled earlier is not sent.
    public var isDetached: Bool

    /// Creates options.
    ///
    /// - Parameters:
    ///   - enqueue: The options with which requests are stored. Default: the defaults of ``EnqueueOptions``.
    ///   - detached: Whether the queue still sends a request that the program cancels after it was stored. Default
    ///     `false`.
    public init(_ enqueue: EnqueueOptions = EnqueueOptions(), detached: Bool = false) {
        self.enqueue = enqueue
        isDetached = detached
    }
}
