internal import Glibc

/// The push of the service's metrics to a collector.
package struct MetricsPush: Hashable, Sendable {
    /// The label of the lane of the pushes. Only the service can enqueue with it, but an import may contain it.
    package static let lane = "netwatch-metrics"
    /// The accepted values of ``interval``: 10 s to 1 h.
    static let acceptedIntervals: ClosedRange<Duration> = .seconds(10)...(.seconds(3600))
    /// The accepted values of ``timeToLive``: 1 min to 7 d.
    static let acceptedTimesToLive: ClosedRange<Duration> = .seconds(60)...(.seconds(7 * 86_400))
    /// The maximum length of ``instance``, in bytes.
    static let longestInstance = 255

    /// The URL of the collector; `nil` for no push.
    package var url: String?
    /// The time between two pushes. Default 60 s.
    package var interval = Duration.seconds(60)
    /// The name of the credential that the queue adds to each push; `nil` for none.
    package var credential: String?
    /// The name of this machine in the pushes; `nil` for its host name.
    package var instance: String?
    /// How long a push is tried. A newer push replaces it before. Default 1 h.
    package var timeToLive = Duration.seconds(3600)

    package init() {}

    /// ``instance``, or the host name as it is now.
    var instanceName: String { instance ?? Self.hostName }

    private static var hostName: String {
        // A name has at most 64 bytes on Linux.
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return "localhost" }
        return name.withUnsafeBytes { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    /// Whether a text is accepted as ``instance``.
    static func isValidInstance(_ text: String) -> Bool {
        (1...longestInstance).contains(text.utf8.count)
            && text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }
}
