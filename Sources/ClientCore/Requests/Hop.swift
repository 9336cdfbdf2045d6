internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// One transfer of an attempt: the first, or one that a redirect, a challenge or a refused range led to.
struct Hop {
    /// What becomes of the response.
    enum Fate {
        case undecided
        /// It is the attempt's.
        case take
        /// Another request is sent when it has ended.
        case follow(URLRequest, Next)
    }

    /// Why there is another hop.
    enum Next {
        case redirect(keepsBody: Bool, crossesOrigin: Bool)
        case credential(TransferCredentials)
        case withoutRange
    }

    /// How much of a body that nobody wants is read, so that the connection can be used again; more costs more
    /// than a new connection.
    static let drainLimit = 64 * 1024

    let id: Int
    /// What is asked for; what follows from the answer is made of it.
    let request: URLRequest
    /// What was sent, with what the response's sink has added.
    let sent: URLRequest
    let url: URL
    let control: TransferControl
    /// What is sent in place of the request's own body; `nil` after a redirect that has dropped it.
    let upload: UploadBody?
    /// Whether credentials of the request go with it.
    let isAuthenticated: Bool
    /// Whether the request left the origin it was made for.
    let isForeign: Bool
    /// What its server has to prove; `nil` for what browsers ask for.
    let trustPolicy: ServerTrustPolicy?
    var fate = Fate.undecided
    /// Whether it has ended, and the next one waits for the request to be resumed.
    var isHeld = false
    var drained = 0
    /// Why we ended it ourselves.
    var failure: (any Error)?
    var head: ResponseHead?
}
