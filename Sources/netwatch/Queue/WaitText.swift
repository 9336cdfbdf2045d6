internal import NetwatchService

/// Describes what a request waits for.
enum WaitText {
    /// Whether the request waits for its lane to open, which happens at a known time.
    static func isForLane(_ entry: ControlMessage.Entry) -> Bool {
        ["lane", "resources"].contains(entry.waitsFor)
    }

    /// Returns what the request waits for, and how to end the wait earlier; `nil` if it waits for nothing.
    static func sentence(_ entry: ControlMessage.Entry) -> String? {
        switch entry.waitsFor {
        case "network": "for a way to the host; it is sent as soon as there is one"
        case "retry": "to be tried again, since its last attempt failed; `netwatch queue flush` tries it now"
        case "lane": "for its lane, which is closed; `netwatch queue flush` opens it now"
        case "slot": "for a slot: as many requests are being sent as may be, to its origin or in all"
        case "resources": "until this machine has descriptors, memory, threads or ports again"
        case "earlier": "for earlier requests, since its lane keeps order"
        case "dependencies": "until those that it comes `after` are delivered"
        case "time": "for the time that it was given"
        case "resume": "because its lane or the whole queue is paused; `netwatch queue resume` ends that"
        default: nil
        }
    }
}
