internal import ClientCore
internal import Foundation
internal import FoundationNetworking

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

extension OfflineOptions {
    /// Returns why a queue can never store a request with these options, whatever its body is; `nil` if it can.
    func refusal(of request: URLRequest, hasCredential: Bool) -> QueueError? {
        if hasCredential { return .credentialNotStored }
        do throws(QueueError) {
            _ = try NewRequest(try QueueRequest(request, body: .data(Data())), options: enqueue)
            return nil
        } catch {
            return error
        }
    }
}

extension QueueError {
    fileprivate static var credentialNotStored: QueueError {
        QueueError(
            .secretHeader,
            "the credentials of `authenticate` are not stored; register them with the queue and name them in "
                + "`EnqueueOptions.credential`"
        )
    }
}

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
