internal import Foundation
internal import NetwatchService

/// The result of `netwatch send` for people.
enum SendReport {
    static func lines(_ sent: ControlMessage.Sent) -> [String] {
        let known = sent.known == true ? "the queue already has a request with this id" : nil
        let hold = HoldText.description(sent.holdReason, sent.reason)
        let retry = sent.state == "dead" ? sent.id.map { "`netwatch queue retry \($0)` tries it again" } : nil
        return [known, summary(of: sent), hold, retry].compactMap(\.self)
    }

    /// Returns the state and its reason. The reason of a held request begins with `held`, so the state is left out.
    private static func summary(of sent: ControlMessage.Sent) -> String {
        let status = sent.status.map { "HTTP \($0)" }
        // A reason that describes a response already contains its status.
        let isRedundant = status.map { sent.reason?.contains($0) ?? false } ?? true
        let reason = sent.reason == sent.state ? nil : sent.reason
        let cause = sent.waitsForRequest.map { "waits for \($0)" } ?? reason
        let isHeld = HoldText.description(sent.holdReason, sent.reason) != nil
        let parts = [isHeld ? nil : state(of: sent), isRedundant ? nil : status, cause]
        return parts.compactMap(\.self).joined(separator: ": ")
    }

    /// Returns the state of an unfinished request and the time until its next attempt, in one line.
    static func progress(
        of sent: ControlMessage.Sent,
        _ entry: ControlMessage.Entry,
        now: Date = Date()
    ) -> String {
        let distance = WaitText.nextAttempt(of: entry).map { max(0, $0.timeIntervalSince(now)) }
        let next = distance.map { "next attempt in \(DurationText.format(.seconds($0)))" }
        return [summary(of: sent), next].compactMap(\.self).joined(separator: ", ")
    }

    /// A request without an id was sent without the queue, which therefore has not given it up.
    private static func state(of sent: ControlMessage.Sent) -> String {
        sent.id == nil && sent.state == "dead" ? "not delivered" : sent.state
    }
}
