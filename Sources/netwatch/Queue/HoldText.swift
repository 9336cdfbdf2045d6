internal import Foundation
internal import NetwatchService
internal import OfflineQueue

/// Descriptions of why requests are held, and of what ends a hold.
enum HoldText {
    /// Returns the description for a hold reason of the control API; `nil` if there is none or it is unknown.
    ///
    /// - Parameter cause: The text of the control API that says why the request is held.
    static func description(_ name: String?, _ cause: String?) -> String? {
        if name == HoldReason.auth.rawValue, let cause {
            if cause.hasSuffix("HTTP 407") { return proxy }
            if cause.hasSuffix(ControlMessage.Entry.noCredential) { return noCredential }
        }
        return name.flatMap(HoldReason.init(rawValue:)).map(description)
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
            "the queue cannot decrypt the request: restart the service with the encryption key; if the stored data was "
                + "changed, only `netwatch queue drop` ends the hold"
        case .ambiguous:
            "the server may have executed the request, so the queue does not send it again automatically; "
                + "`netwatch queue retry` and `release` send it again, `netwatch queue drop` cancels it"
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
    static func nextAttempt(of entry: ControlMessage.Entry) -> Date? {
        switch entry.waitsFor {
        case "retry", "budget", "time": entry.due
        case "lane", "resources": entry.laneClosedUntil
        case "constraint": entry.windowOpens
        // Of held requests, it is the time of the next try.
        case nil: entry.nextTry
        default: nil
        }
    }

    /// Returns what the request waits for and, if possible, how to end the wait earlier. Returns `nil` if it does not
    /// wait.
    ///
    /// - Parameter isBusy: Whether the server may still be processing an attempt. A flush does not end this wait.
    static func description(_ entry: ControlMessage.Entry, isBusy: Bool) -> String? {
        switch entry.waitsFor {
        case "retry" where isBusy, "lane" where isBusy:
            "until the server has probably finished the attempt that timed out; `netwatch queue retry` sends the "
                + "request now, and the server may then process it twice"
        case "network": "for a path to the host; sent as soon as there is one"
        case "portal":
            "until the URL of `service.portal-probe` responds with 204 or an empty 200; another response came from a "
                + "captive portal, or from a server that is not made for probes. `https` URLs do not wait"
        case "retry": "for the delay after a failed attempt; `netwatch queue flush` ends the delay"
        case "lane":
            "for its lane, which failures or a `Retry-After` have closed; `netwatch queue flush` opens it now"
        case "slot":
            "for a slot: the maximum number of requests is in flight, either to its origin or in total"
        case "pace": "for a random delay after an outage or a start; `netwatch queue flush` ends the delay"
        case "rate": "because of a rate limit (`netwatch serve --rate`)"
        case "budget":
            "because retries to its origin are limited; `netwatch queue flush` sends one request of the lane now"
        case "constraint": "until its constraint is met (`--only-unmetered`, `--interface-kind`, `--window`)"
        case "resources": "until this machine has free descriptors, memory, threads or ports"
        case "earlier":
            "for earlier requests of its FIFO lane"
                + (entry.waitsForRequest.map { "; the first is \($0)" } ?? "")
        case "dependencies": "until the requests that it depends on (`--after`) are delivered"
        case "time": "for the time of its first attempt (`--at`)"
        case "resume": "because its lane or the whole queue is paused; `netwatch queue resume` ends the pause"
        default: nil
        }
    }
}
