internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

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
