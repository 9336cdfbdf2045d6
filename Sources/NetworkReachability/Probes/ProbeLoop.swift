internal import NetwatchEventLoop
internal import Synchronization

/// The thread of the probes, started when it is first needed.
package final class ProbeLoop: Sendable {
    /// The one in the process's own network namespace, which all share.
    package static let shared = ProbeLoop()

    private let networkNamespace: String?
    private let started = Mutex<EventLoop?>(nil)

    /// - Parameter networkNamespace: Where its sockets belong; `nil`, the default, is the process's own.
    package init(networkNamespace: String? = nil) {
        self.networkNamespace = networkNamespace
    }

    /// - Throws: ``SystemError`` of the thread's start, which the next call tries again.
    func get() throws(SystemError) -> EventLoop {
        try started.withLock { loop throws(SystemError) in
            if let loop { return loop }
            let new = try EventLoop(label: "nw-probe", networkNamespace: networkNamespace)
            loop = new
            return new
        }
    }
}
