internal import ClientCore
internal import Foundation
internal import FoundationNetworking

extension OfflineOptions {
    /// Returns whether the queue takes over a failed request.
    func cover(_ failed: FailedRequest) -> Bool {
        let mayBeSentTwice = mayBeSentTwice(failed)
        // The server may have received an attempt before the last one. The last failure does not show that.
        guard mayBeSentTwice || !failed.wasReceived else { return false }
        let status = failed.response?.statusCode
        guard let failure = failed.error.transferFailure else {
            return status.map { cover($0, mayBeSentTwice) } ?? false
        }
        let attempt = AttemptFailure(failed.error, failure, status: status)
        return switch FailureTable.classify(attempt) {
        case .path, .unprocessed: true
        case .local: attempt.isLocalShortage
        case .ambiguous: includesAmbiguousFailures && mayBeSentTwice
        case .responded: status.map { cover($0, mayBeSentTwice) } ?? false
        case .trust, .configuration, .authentication, .permanent, .aborted: false
        }
    }

    private func cover(_ status: Int, _ mayBeSentTwice: Bool) -> Bool {
        statuses.contains { $0.contains(status) } && (mayBeSentTwice || FailureTable.isUnapplied(status))
    }

    /// Whether the server recognizes a repetition of what was sent, or a repetition is harmless.
    private func mayBeSentTwice(_ failed: FailedRequest) -> Bool {
        guard !enqueue.isAtMostOnce else { return false }
        // An adapter may have changed the method or the key. The queue sends those of the original request.
        let (stored, sent) = (failed.original, failed.adapted)
        if let key = key(of: stored), key == self.key(of: sent) { return true }
        return [stored, sent].allSatisfy { HTTPMethod.isIdempotent($0.httpMethod ?? "GET") }
    }

    /// The key in the request's header, if the queue sends this key in its attempts.
    private func key(of request: URLRequest) -> String? {
        guard let value = request.value(forHTTPHeaderField: enqueue.idempotencyKey.headerName) else {
            return nil
        }
        switch enqueue.idempotencyKey.source {
        case .automatic: return value
        case .value(let key): return key == value ? value : nil
        case .none: return nil
        }
    }

    /// Returns the header field with the key that all attempts of a request carry; empty if the request has or needs no
    /// key. The first attempt needs the key too, because the server may act on it and the response may be lost.
    func key(for request: URLRequest) -> HTTPHeaders {
        let key = enqueue.idempotencyKey
        let method = request.httpMethod ?? "GET"
        guard key.source == .automatic, request.value(forHTTPHeaderField: key.headerName) == nil,
            let value = key.value(method: method, isAtMostOnce: enqueue.isAtMostOnce)
        else { return [:] }
        let header = KeyHeader(name: key.headerName, value: value, isQuoted: key.isQuoted).header
        return [header.name: header.value]
    }
}
