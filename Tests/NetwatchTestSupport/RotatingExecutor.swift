internal import NetwatchEventLoop
internal import Synchronization

/// An executor that runs each part of a task on the next of its three threads. A task that has suspended is therefore
/// usually resumed by another thread. On the cooperative pool, this depends on the load of the machine.
///
/// Default actors also run on it while a task with this preference calls them.
package final class RotatingExecutor: TaskExecutor {
    private let loops: [EventLoop]
    private let jobs = Atomic(0)

    package init() throws {
        loops = try (0..<3).map { try EventLoop(label: "rotating-\($0)") }
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let number = jobs.wrappingAdd(1, ordering: .relaxed).oldValue
        loops[number % loops.count].execute { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    /// The number of the thread that runs the caller; `nil` if it is not a thread of this executor.
    package var currentThread: Int? { loops.firstIndex { $0.isCurrent } }
}
