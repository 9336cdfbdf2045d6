internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTestSupport

@testable internal import ClientCore

// Owners of failed requests.

/// Records the retry count of each offer and passes the request to a closure.
struct RecordingOwner: FailedRequestOwner {
    let offers = Recorder<UInt>()
    let take: @Sendable (FailedRequest) -> Void

    func offer(_ request: FailedRequest) {
        offers.record(UInt(request.retryCount))
        take(request)
    }
}

/// Adds header fields to a request, and declines each failure.
struct PreparingOwner: FailedRequestOwner {
    let fields: HTTPHeaders

    func offer(_ request: FailedRequest) {}

    func addedFields(for request: URLRequest) -> HTTPHeaders { fields }
}

/// Retains every request that it is offered.
struct HoldingOwner: FailedRequestOwner {
    let kept = Recorder<FailedRequest>()

    func offer(_ request: FailedRequest) { kept.record(request) }

    func first() async throws -> FailedRequest {
        try await kept.wait { !$0.isEmpty }
        return kept.values[0]
    }
}

/// Retains one request until ``decline()``, and then declines it.
final class DecliningOwner: FailedRequestOwner {
    let offered = Recorder<UInt>()
    private let kept = Lock<FailedRequest?>(nil)

    func offer(_ request: FailedRequest) {
        kept.withLock { $0 = request }
        offered.record(1)
    }

    func decline() {
        let forgotten = kept.withLock { kept in
            defer { kept = nil }
            return kept
        }
        withExtendedLifetime(forgotten) {}
    }
}
