internal import ClientCore
internal import Foundation
internal import NetworkReachability

/// The members of the control API. `reason` and `window_opens` are for people and for simple clients: they follow from
/// the other members, and are not decoded.
extension QueuedRequest: Codable {
    private enum CodingKeys: CodingKey {
        case id, sequence, state, holdReason, method, url, lane, fifo, priority, tag, credential, submitter
        case bodyBytes, attempts, deferrals, created, due, nextTry, expires, finished, status, lastError,
            reason
        case waitsFor, waitsForDetail, waitsForRequest, windowOpens, laneClosure, originLimit
    }

    /// Decodes a request.
    ///
    /// - Throws: `DecodingError`.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        let lastError = try members.decodeIfPresent(String.self, forKey: .lastError)
        let wait = try members.decodeIfPresent(String.self, forKey: .waitsFor)
        let detail = try members.decodeIfPresent(String.self, forKey: .waitsForDetail)
        self.init(
            id: try members.decode(String.self, forKey: .id),
            sequence: try members.decode(Int64.self, forKey: .sequence),
            state: try members.decode(State.self, forKey: .state),
            holdReason: try members.decodeIfPresent(HoldReason.self, forKey: .holdReason),
            method: try members.decode(String.self, forKey: .method),
            url: try members.decode(String.self, forKey: .url),
            lane: try members.decodeIfPresent(String.self, forKey: .lane),
            isFIFO: try members.decode(Bool.self, forKey: .fifo),
            priority: try members.decode(Int.self, forKey: .priority),
            tag: try members.decodeIfPresent(String.self, forKey: .tag),
            credential: try members.decodeIfPresent(String.self, forKey: .credential),
            submitter: try members.decodeIfPresent(UInt32.self, forKey: .submitter),
            bodyBytes: try members.decode(Int64.self, forKey: .bodyBytes),
            attempts: try members.decode(Int.self, forKey: .attempts),
            deferrals: try members.decode(Int.self, forKey: .deferrals),
            created: try members.decode(Date.self, forKey: .created),
            nextTry: try members.decodeIfPresent(Date.self, forKey: .nextTry),
            expires: try members.decodeIfPresent(Date.self, forKey: .expires),
            finished: try members.decodeIfPresent(Date.self, forKey: .finished),
            status: try members.decodeIfPresent(Int.self, forKey: .status),
            lastError: lastError,
            laneClosure: try members.decodeIfPresent(LaneClosure.self, forKey: .laneClosure),
            waitReason: wait.flatMap { QueuedReason(name: $0, detail: detail, lastError: lastError) },
            originLimit: try members.decodeIfPresent(Int.self, forKey: .originLimit),
            requestDue: try members.decodeIfPresent(Date.self, forKey: .due),
            laneID: nil,
            precedingID: try members.decodeIfPresent(String.self, forKey: .waitsForRequest)
        )
    }

    /// Encodes the request.
    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(id, forKey: .id)
        try members.encode(sequence, forKey: .sequence)
        try members.encode(state, forKey: .state)
        try members.encodeIfPresent(holdReason, forKey: .holdReason)
        try members.encode(method, forKey: .method)
        try members.encode(url, forKey: .url)
        try members.encodeIfPresent(lane, forKey: .lane)
        try members.encode(isFIFO, forKey: .fifo)
        try members.encode(priority, forKey: .priority)
        try members.encodeIfPresent(tag, forKey: .tag)
        try members.encodeIfPresent(credential, forKey: .credential)
        try members.encodeIfPresent(submitter, forKey: .submitter)
        try members.encode(bodyBytes, forKey: .bodyBytes)
        try members.encode(attempts, forKey: .attempts)
        try members.encode(deferrals, forKey: .deferrals)
        try members.encode(created, forKey: .created)
        try members.encodeIfPresent(due, forKey: .due)
        try members.encodeIfPresent(nextTry, forKey: .nextTry)
        try members.encodeIfPresent(expires, forKey: .expires)
        try members.encodeIfPresent(finished, forKey: .finished)
        try members.encodeIfPresent(status, forKey: .status)
        try members.encodeIfPresent(lastError, forKey: .lastError)
        try members.encodeIfPresent(reason, forKey: .reason)
        try members.encodeIfPresent(waitReason?.name, forKey: .waitsFor)
        try members.encodeIfPresent(waitReason?.detail, forKey: .waitsForDetail)
        try members.encodeIfPresent(waitsForID, forKey: .waitsForRequest)
        try members.encodeIfPresent(windowOpening, forKey: .windowOpens)
        try members.encodeIfPresent(laneClosure, forKey: .laneClosure)
        try members.encodeIfPresent(originLimit, forKey: .originLimit)
    }
}

extension QueuedReason {
    /// The name in JSON; `nil` for reasons that a pending or blocked request cannot have.
    package var name: String? {
        switch self {
        case .notReachable: "network"
        case .captivePortal: "portal"
        case .attemptFailed: "retry"
        case .laneClosed: "lane"
        case .noFreeSlot: "slot"
        case .paced: "pace"
        case .constraint: "constraint"
        case .rateLimited: "rate"
        case .retryBudget: "budget"
        case .localShortage: "resources"
        case .behindEarlier: "earlier"
        case .blocked: "dependencies"
        case .scheduled: "time"
        case .paused: "resume"
        case .held, .alreadyQueued, .stopped, .cancelled: nil
        }
    }

    /// What else a name needs in JSON: the reason why there is no path, the page of a portal, or the unmet constraint.
    fileprivate var detail: String? {
        switch self {
        case .notReachable(let reason): reason.rawValue
        case .captivePortal(let page): page
        case .constraint(let constraint): "\(RequestConstraints(constraint))"
        default: nil
        }
    }

    /// - Parameter lastError: The last error of the request.
    fileprivate init?(name: String, detail: String?, lastError: String?) {
        switch name {
        case "network": self = .notReachable(PathStatus.Reason(rawValue: detail ?? ""))
        case "portal": self = .captivePortal(page: detail)
        case "retry": self = .attemptFailed(lastError ?? "")
        case "constraint":
            guard let constraint = RequestConstraints(stored: detail).only else { return nil }
            self = .constraint(constraint)
        default:
            let others: [QueuedReason] = [
                .laneClosed, .noFreeSlot, .paced, .rateLimited, .retryBudget, .localShortage, .behindEarlier,
                .blocked, .scheduled, .paused,
            ]
            guard let reason = others.first(where: { $0.name == name }) else { return nil }
            self = reason
        }
    }
}

extension RequestConstraints {
    fileprivate init(_ constraint: UnmetConstraint) {
        self.init()
        switch constraint {
        case .unmetered: isUnmetered = true
        case .interfaceKind(let kinds): interfaceKinds = kinds
        case .window(let window): self.window = window
        }
    }

    /// The first constraint; `nil` if there is none.
    fileprivate var only: UnmetConstraint? {
        if isUnmetered { return .unmetered }
        if !interfaceKinds.isEmpty { return .interfaceKind(interfaceKinds) }
        return window.map(UnmetConstraint.window)
    }
}
