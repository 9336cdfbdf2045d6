internal import NetwatchService

/// Describes what a request waits for.
enum WaitText {
    /// Whether the request waits for its lane to open, which happens at a known time.
    static func isForLane(_ entry: ControlMessage.Entry) -> Bool {
        ["lane", "resources"].contains(entry.waitsFor)
    }

    /// Returns what the request waits for, and how to end the wait earlier; `nil` if it waits for nothing.
    static func description(_ entry: ControlMessage.Entry) -> String? {
        switch entry.waitsFor {
        case "network": "for a path to the host; sent as soon as there is one"
        case "retry": "for its next attempt, after a failed one; `netwatch queue flush` tries it now"
        case "lane": "for its lane, which is closed; `netwatch queue flush` opens it now"
        case "slot": "for a slot: the limit of concurrent requests, to its origin or in total, is reached"
        case "resources": "until this machine has free descriptors, memory, threads or ports"
        case "earlier": "for earlier requests of its FIFO lane"
        case "dependencies": "until the requests it comes `after` are delivered"
        case "time": "for the time of its first attempt (`--at`)"
        case "resume": "because its lane or the whole queue is paused; `netwatch queue resume` ends the pause"
        default: nil
        }
    }
}
