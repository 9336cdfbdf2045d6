internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTransport

/// One attempt: its current hop, and the state that all its hops share; see ``Hop``.
struct RequestAttempt {
    let began = BootInstant.now
    /// The body that replaces the request's own in this attempt.
    let upload: UploadBody?
    /// The hop whose transfer is running, or that is held; `nil` between attempts.
    private(set) var hop: Hop?
    /// The number of hops in this attempt and all earlier ones.
    private var hopCount: Int
    /// The number of redirects that were followed.
    private var redirects = 0
    var hasAnsweredChallenge = false
    /// The credentials that answered the attempt's challenge, for later hops to the same origin.
    var challengeCredentials: TransferCredentials?
    /// Whether the last hop sent credentials.
    private(set) var isAuthenticated = false
    /// The transfers that have ended.
    private var transactions: [Transaction] = []

    /// The state before the first attempt.
    init() { (upload, hopCount) = (nil, 0) }

    /// Starts an attempt.
    ///
    /// - Parameter earlier: The attempt before it. The ids of hops continue, so that a late event of an earlier attempt
    ///   is not taken for one of this attempt.
    init(after earlier: RequestAttempt, upload: UploadBody?) {
        self.upload = upload
        hopCount = earlier.hopCount
    }

    /// Whether a transfer of the attempt has ended.
    var hasTransactions: Bool { !transactions.isEmpty }

    /// Whether the attempt has more than one hop, so that a server has responded to an earlier hop, for example with a
    /// redirect.
    var hasEarlierHops: Bool { transactions.count > 1 }

    /// Returns the attempt's metrics, which are computed on first access; `nil` if no transfer has ended.
    func metrics(_ clock: RequestClock) -> LazyMetrics? {
        guard hasTransactions else { return nil }
        return LazyMetrics((transactions, redirects, clock)) { source in
            RequestMetrics(source.transactions, redirects: source.redirects, clock: source.clock)
        }
    }

    mutating func nextHopID() -> Int {
        hopCount += 1
        return hopCount
    }

    mutating func begin(_ hop: Hop) {
        self.hop = hop
        isAuthenticated = hop.isAuthenticated
    }

    mutating func received(_ head: ResponseHead) { hop?.head = head }

    mutating func decide(_ disposition: Hop.Disposition) { hop?.disposition = disposition }

    /// From now on, events are deferred, because the delegate decides later about the response.
    mutating func beginDeciding() { hop?.deferredEvents = [] }

    /// Defers an event while the delegate is deciding. The failure of the transfer is not deferred, so that a cancelled
    /// request does not wait for the delegate.
    ///
    /// - Returns: Whether the event was deferred.
    mutating func deferring(_ event: TransferEvent) -> Bool {
        guard hop?.deferredEvents != nil else { return false }
        if case .end(let end) = event, end.failure != nil { return false }
        hop?.deferredEvents?.append(event)
        return true
    }

    /// Ends the deferral of events and returns the deferred ones, perhaps none. Returns `nil` if no decision was in
    /// progress.
    mutating func endDeciding() -> [TransferEvent]? {
        defer { hop?.deferredEvents = nil }
        return hop?.deferredEvents
    }

    /// Counts bytes of a body that is not used.
    mutating func drained(_ count: Int) { hop?.drainedBytes += count }

    /// Records the error for which the client cancels the hop's transfer.
    mutating func failed(_ error: any Error) { hop?.failure = error }

    /// Sets whether the next hop waits until the request is resumed.
    mutating func hold(_ isHeld: Bool) { hop?.isHeld = isHeld }

    mutating func endHop() { hop = nil }

    /// Counts a redirect.
    ///
    /// - Throws: `URLError.httpTooManyRedirects` above the limit.
    mutating func countRedirect() throws {
        redirects += 1
        guard redirects <= Redirection.limit else { throw URLError.tooManyRedirects }
    }

    mutating func record(_ transaction: Transaction) { transactions.append(transaction) }
}

extension URLError {
    fileprivate static var tooManyRedirects: URLError {
        URLError(.httpTooManyRedirects, message: "more than \(Redirection.limit) redirects")
    }
}

/// One transfer of an attempt: the first one, or one that follows a redirect, a challenge or a refused range request.
///
/// It is confined to the request's queue.
final class Hop {
    /// What happens with the response of the hop.
    enum Disposition {
        case undecided
        /// The attempt's response: its body goes to the sink.
        case accept
        /// The response is discarded, and another request is sent when the hop has ended.
        case follow(URLRequest, Reason)
    }

    /// The reason for the next hop.
    enum Reason {
        case redirect(keepsBody: Bool, crossesOrigin: Bool, sentText: String?)
        case credential(TransferCredentials)
        case withoutRange
    }

    /// The maximum number of bytes that are read from an unused body so that the connection can be reused: 64 KiB. A
    /// new connection costs less than reading more.
    static let drainLimit = 64 * 1024

    let id: Int
    /// The request before the response sink changes it. The request of the next hop is derived from this one.
    let request: URLRequest
    /// The request as it was sent, including the fields that the response sink added, for example `Range`.
    let sent: URLRequest
    let url: URL
    /// The text of ``url`` as it is sent, if it differs; see ``RedirectTarget/sentText``. Everything but the request
    /// line depends on ``url``.
    let sentText: String?
    let control: TransferControl
    /// The body that replaces the request's own; `nil` if there is none, and after a redirect that drops the body.
    let upload: UploadBody?
    /// Whether the hop sends the request's credentials.
    let isAuthenticated: Bool
    /// Whether a redirect has led to an origin that differs from the origin of the attempt's first hop.
    let isCrossOrigin: Bool
    /// The policy by which the server is evaluated; `nil` for the default evaluation.
    let trustPolicy: ServerTrustPolicy?
    var disposition = Disposition.undecided
    /// Whether the hop has ended while the request is suspended. The next hop starts when the request is resumed.
    var isHeld = false
    /// The events that arrived while the delegate decides about the response; `nil` if it is not deciding.
    var deferredEvents: [TransferEvent]?
    var drainedBytes = 0
    /// The error that made the client cancel the transfer, for example a full disk; `nil` if the client did not cancel
    /// it.
    var failure: (any Error)?
    var head: ResponseHead?

    init(
        id: Int,
        request: URLRequest,
        sent: URLRequest,
        url: URL,
        sentText: String?,
        control: TransferControl,
        upload: UploadBody?,
        isAuthenticated: Bool,
        isCrossOrigin: Bool,
        trustPolicy: ServerTrustPolicy?
    ) {
        self.id = id
        self.request = request
        self.sent = sent
        self.url = url
        self.sentText = sentText
        self.control = control
        self.upload = upload
        self.isAuthenticated = isAuthenticated
        self.isCrossOrigin = isCrossOrigin
        self.trustPolicy = trustPolicy
    }

    /// Whether no transfer is running any more.
    var hasEnded: Bool {
        if isHeld { return true }
        guard case .end? = deferredEvents?.last else { return false }
        return true
    }
}
