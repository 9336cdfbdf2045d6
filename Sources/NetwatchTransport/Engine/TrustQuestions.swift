internal import NetwatchEventLoop

/// The questions that transfers wait for, and the calls of the program's checks. A value without I/O.
///
/// Transfers with the same question share one call. A call may never return, and then blocks a thread for ever:
///
/// - After ``timeout``, a call is overdue, and the next transfer with the same question causes another call. The newest
///   call decides: it takes over the transfers that wait for the overdue call, whose result is then ignored.
/// - The calls in progress, overdue ones included, are limited per host of a check, per check, and in all. A question
///   beyond a limit waits until a call has returned. A transfer waits only until its own time limit.
struct TrustQuestions {
    /// A call of the program's check that must be started.
    struct Call: Sendable {
        let number: Int
        let question: TrustQuestion
    }

    /// The result of ``end(_:isAccepted:at:)``.
    struct Ended {
        /// The transfers that get the answer.
        let transfers: [TransferID]
        /// The start of the lifetime of an accepted server; `nil` if the server must not be remembered.
        let acceptedAt: BootInstant?
        /// The calls that must be started now.
        let next: [Call]
    }

    /// The time after which a call is overdue, and the maximum time for which a transfer waits.
    static let timeout = Duration.seconds(30)
    /// The maximum number of calls in progress for the same check and host.
    static let maximumPerHost = 4
    /// The maximum number of calls in progress for the same check.
    static let maximumPerCheck = 64
    /// The maximum number of calls in progress.
    static let maximum = 128

    private struct Entry {
        let call: Call
        var transfers: [TransferID]
        /// The time at which the call was started; `nil` while the question waits for other calls.
        var startedAt: BootInstant?
        /// Whether a newer call with the same question was added, which decides instead.
        var isSuperseded = false

        func isOverdue(at now: BootInstant) -> Bool {
            startedAt.map { now >= $0 + TrustQuestions.timeout } ?? false
        }
    }

    /// A group of calls that share a limit.
    private struct Scope: Hashable {
        var check: TrustCheck?
        var host: String?
    }

    /// The questions in the order in which they were asked.
    private var entries: [Entry] = []
    /// The number of calls in progress.
    private var running: [Scope: Int] = [:]
    private var lastNumber = 0

    /// Adds a transfer that waits for an answer. Returns the call that must be started for it, if any.
    mutating func add(_ transfer: TransferID, _ question: TrustQuestion, at now: BootInstant) -> [Call] {
        let same = entries.firstIndex { $0.call.question == question && !$0.isOverdue(at: now) }
        if let same {
            entries[same].transfers.append(transfer)
            return []
        }
        lastNumber += 1
        let transfers = supersedeCalls(with: question) + [transfer]
        entries.append(Entry(call: Call(number: lastNumber, question: question), transfers: transfers))
        return start(entries.indices.suffix(1), at: now)
    }

    /// Removes a transfer that no longer waits. A call in progress continues.
    mutating func remove(_ transfer: TransferID) {
        for index in entries.indices { entries[index].transfers.removeAll { $0 == transfer } }
        entries.removeAll { $0.transfers.isEmpty && $0.startedAt == nil }
    }

    /// Records that a call has returned or could not be started.
    mutating func end(_ number: Int, isAccepted: Bool, at now: BootInstant) -> Ended {
        guard let index = entries.firstIndex(where: { $0.call.number == number }) else {
            preconditionFailure("a call of a trust check has ended twice")
        }
        let entry = entries.remove(at: index)
        for (scope, _) in Self.limits(of: entry.call.question) {
            running[scope]! -= 1
            if running[scope] == 0 { running[scope] = nil }
        }
        return Ended(
            transfers: entry.transfers,
            acceptedAt: isAccepted && !entry.isSuperseded ? entry.startedAt : nil,
            next: start(entries.indices, at: now)
        )
    }

    /// Makes the results of the calls with a question irrelevant. Returns the transfers that waited for them.
    private mutating func supersedeCalls(with question: TrustQuestion) -> [TransferID] {
        var taken: [TransferID] = []
        for index in entries.indices where entries[index].call.question == question {
            taken += entries[index].transfers
            entries[index].transfers = []
            entries[index].isSuperseded = true
        }
        return taken
    }

    /// Starts the calls that the limits permit.
    private mutating func start(_ indices: Range<Int>, at now: BootInstant) -> [Call] {
        var started: [Call] = []
        for index in indices where entries[index].startedAt == nil {
            let call = entries[index].call
            let limits = Self.limits(of: call.question)
            guard limits.allSatisfy({ running[$0.scope, default: 0] < $0.limit }) else { continue }
            for (scope, _) in limits { running[scope, default: 0] += 1 }
            entries[index].startedAt = now
            started.append(call)
        }
        return started
    }

    private static func limits(of question: TrustQuestion) -> [(scope: Scope, limit: Int)] {
        [
            (Scope(check: question.check, host: question.presented.host), maximumPerHost),
            (Scope(check: question.check), maximumPerCheck),
            (Scope(), maximum),
        ]
    }
}
