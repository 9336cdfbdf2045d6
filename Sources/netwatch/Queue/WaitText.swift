internal import Foundation
internal import NetwatchService

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
