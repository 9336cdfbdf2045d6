internal import ArgumentParser
internal import Foundation
internal import NetwatchService
internal import OfflineQueue

/// How long `--wait` waits for a request to finish.
enum WaitLimit: Hashable {
    case forEver
    case atMost(Duration)

    /// The value that stands for `--wait` without a duration.
    static let bare = "for-ever"

    static func argument(_ text: String) throws -> WaitLimit {
        text == bare ? .forEver : .atMost(try Duration.argument(text))
    }

    /// Joins `--wait` with the next argument if that is a duration, otherwise with ``bare``. The parser would take any
    /// next argument as the value, even the URL.
    static func expanding(_ arguments: [String]) -> [String] {
        var (result, rest) = ([String](), arguments[...])
        while let argument = rest.popFirst() {
            if argument == "--" { return result + [argument] + rest }
            guard argument == "--wait" else {
                result.append(argument)
                continue
            }
            if let next = rest.first, DurationText.parse(next) != nil {
                result.append("--wait=" + rest.removeFirst())
            } else {
                result.append("--wait=" + bare)
            }
        }
        return result
    }
}

/// Waits until a request is finished.
struct CompletionWait {
    let client: ServiceClient
    let limit: WaitLimit
    /// Shows meanwhile what the request waits for; `nil` for no output.
    let status: StatusLine?

    /// The maximum wait in one call to the service. A longer wait takes several calls, because the service may end in
    /// the meantime, and because each response updates the status.
    private var longestCall: Duration { status == nil ? .seconds(60) : .seconds(2) }

    /// - Returns: The last known result. It is `queued` if the service does not respond any more: the service accepted
    ///   the request before this call.
    /// - Throws: An error if the service does not know the request.
    func result(of id: String) async throws(CommandError) -> ControlMessage.Sent {
        var deadline: ContinuousClock.Instant?
        if case .atMost(let limit) = limit { deadline = .now + limit }
        status?.show("waiting")
        defer { status?.clear() }
        while true {
            let left = deadline.map { max(.zero, ContinuousClock.now.duration(to: $0)) }
            do throws(CommandError) {
                let details = try await details(of: id, waiting: left)
                let sent = ControlMessage.Sent(details)
                guard sent.state == "queued", left != .zero else { return sent }
                status?.show(SendReport.progress(of: sent, details.summary))
            } catch {
                return try Self.acceptedResult(of: id, after: error)
            }
        }
    }

    /// - Parameter left: The maximum time to wait; `nil` for no limit.
    private func details(
        of id: String,
        waiting left: Duration?
    ) async throws(CommandError) -> RequestDetails {
        let timeout = min(left ?? longestCall, longestCall)
        return try await client.get(
            "/v1/requests/\(id.urlEscaped)?wait=\(timeout.seconds)",
            extra: timeout,
            busyLimit: left,
            as: RequestDetails.self
        )
    }

    /// Returns `queued`, with the reason, if the error means that the service cannot report the result now. Rethrows
    /// every other error.
    private static func acceptedResult(
        of id: String,
        after error: CommandError
    ) throws(CommandError) -> ControlMessage.Sent {
        let reason: String
        switch error.status {
        case .tryAgain: reason = "the service is too busy to report the result"
        // The service gives the same reason to a command whose attempt was in progress when the service stopped.
        case .unavailable: reason = "\(QueuedReason.stopped)"
        case _ where error.code == QueueError.Code.stopped.rawValue: reason = "\(QueuedReason.stopped)"
        case _ where error.isOutcomeUnknown: reason = "the service does not respond"
        default: throw error
        }
        return ControlMessage.Sent(id: id, state: "queued", reason: reason)
    }
}

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
        _ request: QueuedRequest,
        now: Date = Date()
    ) -> String {
        let distance = WaitText.nextAttempt(of: request).map { max(0, $0.timeIntervalSince(now)) }
        let next = distance.map { "next attempt in \(DurationText.format(.seconds($0)))" }
        return [summary(of: sent), next].compactMap(\.self).joined(separator: ", ")
    }

    /// A request without an id was sent without the queue, which therefore has not given it up.
    private static func state(of sent: ControlMessage.Sent) -> String {
        sent.id == nil && sent.state == "dead" ? "not delivered" : sent.state
    }
}
