internal import Synchronization

/// The limit on the number of probes that run at once. A probe without a slot waits.
///
/// Without the limit, all watched hosts would be probed at the moment when a link comes up. For ten thousand hosts the
/// process would need as many sockets, more than it may open.
final class ProbeSlots: Sendable {
    private struct Waiter {
        let id: UInt64
        let continuation: CheckedContinuation<Bool, Never>
    }

    private struct State {
        var free: Int
        var waiters: [Waiter] = []
        var nextID: UInt64 = 0
    }

    /// The 128 slots that all probes of the process share.
    ///
    /// That is an eighth of the usual limit of 1,024 descriptors (`RLIMIT_NOFILE` in getrlimit(2)).
    static let shared = ProbeSlots(count: 128)

    private let state: Mutex<State>

    init(count: Int) {
        state = Mutex(State(free: count))
    }

    /// The number of waiting probes.
    var waitingCount: Int { state.withLock { $0.waiters.count } }

    /// Waits for a slot. Returns whether the caller has got one; `false` if the task was cancelled before that.
    func acquire() async -> Bool {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { wait(Waiter(id: id, continuation: $0)) }
        } onCancel: {
            cancelWait(id)
        }
    }

    /// Releases a slot. The probe that has waited longest gets it.
    func release() {
        let next = state.withLock { state -> Waiter? in
            guard state.waiters.isEmpty else { return state.waiters.removeFirst() }
            state.free += 1
            return nil
        }
        next?.continuation.resume(returning: true)
    }

    private func wait(_ waiter: Waiter) {
        let answer = state.withLock { state -> Bool? in
            // Checked under the lock: if the task is cancelled after this check, `cancelWait` finds the waiter.
            if Task.isCancelled { return false }
            guard state.free > 0 else {
                state.waiters.append(waiter)
                return nil
            }
            state.free -= 1
            return true
        }
        if let answer { waiter.continuation.resume(returning: answer) }
    }

    private func cancelWait(_ id: UInt64) {
        let waiter = state.withLock { state -> Waiter? in
            guard let index = state.waiters.firstIndex(where: { $0.id == id }) else { return nil }
            return state.waiters.remove(at: index)
        }
        waiter?.continuation.resume(returning: false)
    }
}
