internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// One transfer of an attempt: the first, or one caused by a redirect, a challenge or a refused range.
struct Hop {
    /// How the response of the hop is handled.
    enum Disposition {
        case undecided
        /// The attempt's response: its body goes to the sink.
        case accept
        /// The response is discarded, and another request is sent when the hop has ended.
        case follow(URLRequest, Reason)
    }

    /// The reason for the next hop.
    enum Reason {
        case redirect(keepsBody: Bool, crossesOrigin: Bool)
        case credential(TransferCredentials)
        case withoutRange
    }

    /// The maximum number of bytes read from an unwanted body so that the connection can be reused. Reading
    /// more costs more than a new connection.
    static let drainLimit = 64 * 1024

    let id: Int
    /// The request before the sink has changed it. The next hop's request is derived from it.
    let request: URLRequest
    /// The request as sent, including what the response sink added.
    let sent: URLRequest
    let url: URL
    let control: TransferControl
    /// The body that replaces the request's own; `nil` after a redirect that drops the body.
    let upload: UploadBody?
    /// Whether the hop sends the request's credentials.
    let isAuthenticated: Bool
    /// Whether the request has left its original origin.
    let isCrossOrigin: Bool
    /// How the server is authenticated; `nil` for the default evaluation, that of browsers.
    let trustPolicy: ServerTrustPolicy?
    var disposition = Disposition.undecided
    /// Whether the hop has ended and the next one starts only when the request is resumed.
    var isHeld = false
    var drainedBytes = 0
    /// The reason why the client ended the hop itself.
    var failure: (any Error)?
    var head: ResponseHead?
}
