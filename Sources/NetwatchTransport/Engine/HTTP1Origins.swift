internal import NetwatchEventLoop

/// The origins to which requests use HTTP/1.1, because HTTP/2 has failed there. A value without a clock.
///
/// Some servers send fields in HTTP/2 responses that HTTP/2 forbids, such as `Upgrade` (RFC 9113 §8.2.2), for example
/// nginx in front of Apache. The same response is valid in HTTP/1.1. Without this memory the server would execute each
/// repetition of a request, and none would ever get a response. The engine does not send the failed request again:
/// whether it may be sent twice is the caller's decision.
struct HTTP1Origins {
    /// The maximum number of origins. A further one replaces the one that was added first.
    static let limit = 256
    /// The time after which HTTP/2 is tried again: a day. By then the server may have been repaired.
    static let lifetime = Duration.seconds(24 * 3600)

    /// The time from which HTTP/2 is used again, by origin.
    private var ends: [String: BootInstant] = [:]

    /// Returns whether requests to an origin use HTTP/1.1.
    func contains(_ origin: String, at now: @autoclosure () -> BootInstant) -> Bool {
        ends[origin].map { $0 > now() } ?? false
    }

    /// Records that HTTP/2 has failed at an origin.
    mutating func insert(_ origin: String, at now: BootInstant) {
        ends[origin] = now + Self.lifetime
        guard ends.count > Self.limit, let first = ends.min(by: { $0.value < $1.value }) else { return }
        ends[first.key] = nil
    }

    /// Records that an origin does not speak HTTP/1.1 either.
    mutating func remove(_ origin: String) {
        ends[origin] = nil
    }
}
