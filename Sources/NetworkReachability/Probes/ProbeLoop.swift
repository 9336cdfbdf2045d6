internal import NetwatchEventLoop

/// The event loop of the probes. The first use starts its thread.
package final class ProbeLoop: Sendable {
    /// The shared loop in the network namespace of the process.
    package static let shared = ProbeLoop()

    private let networkNamespace: String?
    private let started = Lock<EventLoop?>(nil)

    /// - Parameter networkNamespace: The path of the network namespace of the probes' sockets. Default: `nil`, the
    ///   namespace of the process.
    package init(networkNamespace: String? = nil) {
        self.networkNamespace = networkNamespace
    }

    /// Returns the loop. Starts its thread if that has not been done before.
    ///
    /// - Throws: ``SystemError`` if the thread cannot be started. The next call tries again.
    func get() throws(SystemError) -> EventLoop {
        try started.withLock { loop throws(SystemError) in
            if let loop { return loop }
            let new = try EventLoop(label: "nw-probe", networkNamespace: networkNamespace)
            loop = new
            return new
        }
    }
}
