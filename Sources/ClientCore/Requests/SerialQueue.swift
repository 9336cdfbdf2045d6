internal import Dispatch

/// A serial dispatch queue that an actor can run on, so that its turns keep the order in which they were
/// asked for, and threads that wait for user code are not the cooperative pool's.
final class SerialQueue: SerialExecutor {
    private let queue: DispatchQueue

    init(label: String) {
        queue = DispatchQueue(label: label, target: .global(qos: .utility))
    }

    func async(_ body: @escaping @Sendable () -> Void) {
        queue.async(execute: body)
    }

    func after(_ delay: Duration, _ body: @escaping @Sendable () -> Void) {
        queue.asyncAfter(deadline: .now() + delay.inSeconds, execute: body)
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    func checkIsolated() {
        dispatchPrecondition(condition: .onQueue(queue))
    }
}

extension Duration {
    var inSeconds: Double { self / .seconds(1) }

    /// Seconds as Foundation has them; what is not a time, or below zero, is none.
    init(seconds: Double) {
        let longest = Double(Int32.max)
        self = seconds > 0 ? .seconds(min(seconds, longest)) : .zero
    }
}
