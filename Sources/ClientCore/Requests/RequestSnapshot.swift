internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop

/// The part of a request's state that every thread may read. The request's queue updates it.
final class RequestSnapshot: Sendable {
    struct Values: Sendable {
        var state = Request.State.initialized
        var request: URLRequest?
        var current: URLRequest?
        var head: ResponseHead?
        var retryCount = 0
        var metrics: LazyMetrics?
        var credential: URLCredential?
        var resumeData: Data?
        var ownerRefusal: (any Error)?
    }

    private let values: Lock<Values>

    init(_ request: URLRequest?) {
        values = Lock(Values(request: request, current: request))
    }

    var now: Values { values.withLock { $0 } }

    /// The credential of ``now``. Each transfer reads it, and copying all values takes longer.
    var credential: URLCredential? { values.withLock { $0.credential } }

    func change(_ change: (inout Values) -> Void) {
        values.withLock { change(&$0) }
    }
}
