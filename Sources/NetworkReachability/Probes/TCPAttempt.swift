internal import Glibc
internal import NetwatchEventLoop

/// One connection being made, on the probes' thread.
actor TCPAttempt {
    private let loop: EventLoop
    private let path: NetworkPath
    private let port: UInt16
    private let timeout: Duration

    private var socket: FileDescriptor?
    private var registration: EventLoop.Registration?
    private var timer: EventLoop.Timer?
    private var started: ContinuousClock.Instant?
    private var waiter: CheckedContinuation<ProbeResult, Never>?
    private var result: ProbeResult?

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(loop: EventLoop, path: NetworkPath, port: UInt16, timeout: Duration) {
        self.loop = loop
        self.path = path
        self.port = port
        self.timeout = timeout
    }

    /// Makes the connection and returns how that went. Once.
    func run() async -> ProbeResult {
        await withCheckedContinuation { continuation in
            waiter = continuation
            if let result { return give(result) }
            do throws(SystemError) {
                try begin()
            } catch {
                end(ProbeResult(.failed(Self.words(for: error))))
            }
        }
    }

    /// Ends the attempt, before or after it began. Callable from any thread.
    nonisolated func cancel() {
        loop.execute { self.assumeIsolated { $0.end(ProbeResult(.failed("cancelled"))) } }
    }

    // MARK: Connecting

    private func begin() throws(SystemError) {
        let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let family = path.destination.family == .ipv4 ? AF_INET : AF_INET6
        let number = try loop.inNetworkNamespace { () throws(SystemError) in
            try systemCall("socket") { Glibc.socket(family, type, 0) }
        }
        socket = FileDescriptor(owning: number)
        try path.binding.apply(to: number)
        started = .now
        do throws(SystemError) {
            try connect(number)
        } catch  where error.errno == EINPROGRESS {
            try waitForOutcome(of: number)
            return
        }
        connected()
    }

    private func connect(_ socket: CInt) throws(SystemError) {
        try systemCall("connect") {
            path.destination.withSocketAddress(port: port, scope: path.interfaceIndex) {
                Glibc.connect(socket, $0, $1)
            }
        }
    }

    private func waitForOutcome(of socket: CInt) throws(SystemError) {
        registration = try loop.register(socket, for: .write) { [weak self] _ in
            self?.assumeIsolated { $0.isReady() }
        }
        timer = loop.schedule(at: .now + timeout) { [weak self] in
            self?.assumeIsolated { $0.end(ProbeResult(.failed("no answer within \($0.timeout)"))) }
        }
    }

    /// The attempt was decided: its outcome waits in `SO_ERROR` (connect(2)).
    private func isReady() {
        guard let number = socket?.rawValue else { return }
        var outcome: CInt = 0
        var size = socklen_t(MemoryLayout<CInt>.size)
        getsockopt(number, SOL_SOCKET, SO_ERROR, &outcome, &size)
        guard outcome != 0 else { return connected() }
        let error = SystemError(call: "connect", errno: outcome)
        // Only the far side refuses; every other error is made on this side, or half-way.
        let latency = outcome == ECONNREFUSED ? elapsed : nil
        end(ProbeResult(.failed(Self.words(for: error)), latency: latency))
    }

    private func connected() {
        end(ProbeResult(.valid, latency: elapsed))
    }

    private var elapsed: Duration? {
        started.map { $0.duration(to: .now) }
    }

    // MARK: The end

    private func end(_ result: ProbeResult) {
        guard self.result == nil else { return }
        self.result = result
        if let registration { loop.unregister(registration) }
        if let timer { loop.cancel(timer) }
        socket = nil
        give(result)
    }

    private func give(_ result: ProbeResult) {
        waiter?.resume(returning: result)
        waiter = nil
    }

    private static func words(for error: SystemError) -> String {
        switch (error.call, error.errno) {
        case (_, ECONNREFUSED): "connection refused"
        case (_, ENODEV): "the interface is gone"
        case (_, EADDRNOTAVAIL): "the source address is gone"
        case ("connect", let errno): errnoDescription(errno).lowercased()
        default: "\(error)"
        }
    }
}
