internal import ArgumentParser
internal import NetwatchService

/// How long `--wait` waits for a request to finish.
enum WaitLimit: Hashable {
    case forEver
    case atMost(Duration)

    /// The value of `--wait` without an argument.
    static let bare = "for-ever"

    static func argument(_ text: String) throws -> WaitLimit {
        text == bare ? .forEver : .atMost(try Duration.argument(text))
    }

    /// Adds the value to a bare `--wait`. Otherwise the parser would take the next argument as its value, even the URL.
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

    /// The longest wait of a single call. A limit is needed because the service may end meanwhile.
    private static let longestCall: Duration = .seconds(60)

    /// - Returns: The last known result. If the service became unavailable, it still has the request.
    /// - Throws: An error if the service does not know the request.
    func result(of id: String) async throws(CommandError) -> ControlMessage.Sent {
        var deadline: ContinuousClock.Instant?
        if case .atMost(let limit) = limit { deadline = .now + limit }
        while true {
            let left = deadline.map { max(.zero, ContinuousClock.now.duration(to: $0)) }
            let sent = try await latestResult(of: id, left)
            guard sent.state == "queued", left != .zero, !Self.isUnanswered(sent) else { return sent }
        }
    }

    private static let serviceGone = "accepted; the service stopped responding"
    private static let serviceBusy = "accepted; the service is too busy to report the result"

    private static func isUnanswered(_ sent: ControlMessage.Sent) -> Bool {
        sent.reason == serviceGone || sent.reason == serviceBusy
    }

    /// - Parameter left: How long to wait at most; `nil` for no limit.
    private func latestResult(of id: String, _ left: Duration?) async throws(CommandError)
        -> ControlMessage.Sent
    {
        let timeout = min(left ?? Self.longestCall, Self.longestCall)
        let target = "/v1/requests/\(id.urlEscaped)?wait=\(timeout.seconds)"
        do {
            return .init(
                try await client.get(
                    target,
                    extra: timeout,
                    busyLimit: left,
                    as: ControlMessage.Details.self
                )
            )
        } catch {
            let isBusy = error.status == .tryAgain
            guard error.status == .unavailable || error.isOutcomeUnknown || isBusy else { throw error }
            let reason = isBusy ? Self.serviceBusy : Self.serviceGone
            return ControlMessage.Sent(id: id, state: "queued", reason: reason)
        }
    }
}
