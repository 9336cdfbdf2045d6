internal import Foundation
internal import NetwatchService
internal import OfflineQueue

/// Descriptions of why requests are held, and of what ends a hold.
enum HoldText {
    /// Returns the description of a hold reason; `nil` if there is none.
    ///
    /// - Parameter cause: The text of the control API that says why the request is held.
    static func description(_ reason: HoldReason?, _ cause: String?) -> String? {
        if reason == .auth, let cause {
            if cause.hasSuffix("HTTP 407") { return proxy }
            if cause.hasSuffix(QueuedRequest.noCredential) { return noCredential }
        }
        return reason.map(description)
    }

    /// The description of a hold for `auth` after a 407, which does not concern the credential of the request.
    private static let proxy =
        "HTTP 407: probably a proxy between this machine and the server requires its own credential; the credential of "
        + "the request is not the cause. The queue tries such a request again \(intervals); `netwatch queue flush` tries "
        + "all of them now"

    /// The description of a hold for `auth` after a 401 to a request without a credential.
    private static let noCredential =
        "the server requires credentials, and the request has none: `netwatch queue credential` gives it one. The queue "
        + "tries such a request again \(intervals), in case the server changes"

    private static let intervals = "after 5 minutes, and then at intervals that double up to an hour"

    private static func description(_ reason: HoldReason) -> String {
        switch reason {
        case .trust:
            "the server's certificate is not trusted; the queue tries the request again within 15 minutes, and when "
                + "the path changes"
        case .configuration:
            "a setting of this machine is wrong; `netwatch queue flush` or a restart of the service tries the request "
                + "again"
        case .auth:
            "the credential of the request is missing, refused or unusable. The queue tries all such requests again when "
                + "the credential changes, and one of them \(intervals); its success releases the others. `netwatch queue "
                + "credential` names another credential"
        case .key:
            "the queue cannot read the request: restart the service with the encryption key; if the stored data was "
                + "changed, only `netwatch queue cancel` ends the hold"
        case .ambiguous:
            "the server may have executed the request, so the queue does not send it again automatically; "
                + "`netwatch queue retry` and `release` send it again, `netwatch queue cancel` cancels it"
        case .user:
            "a user held the request, or an import held it because a part is missing (`error` in "
                + "`netwatch queue show`); `netwatch queue release` ends the hold"
        case .dependency:
            "a request on which this one depends was not delivered; `netwatch queue release` sends this one "
                + "nevertheless"
        }
    }
}

/// Descriptions of what a request waits for.
enum WaitText {
    /// Returns when the request is tried next, if it waits for a time; otherwise `nil`.
    static func nextAttempt(of request: QueuedRequest) -> Date? {
        switch request.waitReason {
        case .attemptFailed, .retryBudget, .scheduled: request.due
        case .laneClosed, .localShortage: request.laneClosure?.until
        case .constraint: request.windowOpening
        // Of held requests, it is the time of the next try.
        case nil: request.nextTry
        default: nil
        }
    }

    /// Returns what the request waits for and, if possible, how to end the wait earlier. Returns `nil` if it does not
    /// wait.
    ///
    /// - Parameter isBusy: Whether the server may still be processing an attempt. A flush does not end this wait.
    static func description(_ request: QueuedRequest, isBusy: Bool) -> String? {
        switch request.waitReason {
        case .attemptFailed where isBusy, .laneClosed where isBusy:
            "until the server has probably finished the attempt that timed out; `netwatch queue retry` sends the "
                + "request now, and the server may then process it twice"
        case .notReachable: "for a path to the host; sent as soon as there is one"
        case .captivePortal:
            "until the URL of `service.portal-probe` responds with 204 or an empty 200; another response came from a "
                + "captive portal, or from a server that is not made for probes. `https` URLs do not wait"
        case .attemptFailed: "for the delay after a failed attempt; `netwatch queue flush` ends the delay"
        case .laneClosed:
            "for its lane, which failures or a `Retry-After` have closed; `netwatch queue flush` opens it now"
        case .noFreeSlot:
            "for a slot: the maximum number of requests is in flight, either to its origin or in total"
        case .paced: "for a random delay after an outage or a start; `netwatch queue flush` ends the delay"
        case .rateLimited: "because of a rate limit (`netwatch serve --rate`)"
        case .retryBudget:
            "because retries to its origin are limited; `netwatch queue flush` sends one request of the lane now"
        case .constraint: "until its constraint is met (`--only-unmetered`, `--interface-kind`, `--window`)"
        case .localShortage: "until this machine has free descriptors, memory, threads or ports"
        case .behindEarlier:
            "for earlier requests of its FIFO lane"
                + (request.waitsForID.map { "; the first is \($0)" } ?? "")
        case .blocked: "until the requests that it depends on (`--dependency`) are delivered"
        case .scheduled: "for the time of its first attempt (`--at`)"
        case .paused: "because its lane or the whole queue is paused; `netwatch queue resume` ends the pause"
        default: nil
        }
    }
}
