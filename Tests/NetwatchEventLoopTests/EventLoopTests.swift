internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@Suite struct EventLoopTests {
    /// An actor whose executor is the loop, like the owners of libnl sockets and of libcurl's handles.
    private actor Owner {
        let loop: EventLoop
        private(set) var readable: [UInt8] = []

        nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

        init(loop: EventLoop) {
            self.loop = loop
        }

        var runsOnLoop: Bool { loop.isCurrent }

        func received(_ byte: UInt8) { readable.append(byte) }
    }

    /// A pipe whose bytes a loop reads.
    private struct ReadPipe {
        let output: CInt
        private let input: CInt
        private let loop: EventLoop
        private let registration: EventLoop.Registration

        /// - Parameter onByte: Called on the loop for each byte.
        init(_ loop: EventLoop, onByte: @escaping @Sendable () -> Void) throws {
            var ends: [CInt] = [0, 0]
            try #require(pipe(&ends) == 0)
            let input = ends[0]
            (self.input, output, self.loop) = (input, ends[1], loop)
            registration = try loop.register(input, for: .read) { _ in
                var byte: UInt8 = 0
                read(input, &byte, 1)
                onByte()
            }
        }

        func close() {
            loop.unregister(registration)
            // A handler that is running ends before the descriptors are closed.
            loop.runAndWait {}
            for descriptor in [input, output] { Glibc.close(descriptor) }
        }
    }

    @Test func `an actor on the loop runs on its thread`() async throws {
        let owner = Owner(loop: try EventLoop(label: "test"))
        #expect(await owner.runsOnLoop)
        #expect(!owner.loop.isCurrent)
    }

    /// The engine's thread writes to sockets and pipes whose other end may be closed. Without this, SIGPIPE would end
    /// the program.
    @Test(arguments: [SIGPIPE, SIGTERM, SIGCHLD])
    func `signals are blocked on a loop's thread`(signal: CInt) throws {
        let loop = try EventLoop(label: "test")
        let isBlocked = loop.runAndWait {
            var blocked = sigset_t()
            pthread_sigmask(SIG_BLOCK, nil, &blocked)
            return sigismember(&blocked, signal) == 1
        }
        #expect(isBlocked)
    }

    @Test func `writing to a closed pipe on a loop's thread is an error`() throws {
        let loop = try EventLoop(label: "test")
        let errno = loop.runAndWait {
            var pipe: [CInt] = [0, 0]
            Glibc.pipe(&pipe)
            close(pipe[0])
            defer { close(pipe[1]) }
            return write(pipe[1], "x", 1) < 0 ? Glibc.errno : 0
        }
        #expect(errno == EPIPE)
    }

    @Test func `closures run in the order in which they were enqueued`() async throws {
        let loop = try EventLoop(label: "test")
        let order = await withCheckedContinuation { continuation in
            let collected = Recorder<Int>()
            for index in 0..<100 { loop.execute { collected.record(index) } }
            loop.execute { continuation.resume(returning: collected.values) }
        }
        #expect(order == Array(0..<100))
    }

    @Test func `a call that is isolated to an actor runs on the loop, in order with closures`() async throws {
        let owner = Owner(loop: try EventLoop(label: "test"))
        for byte: UInt8 in [1, 3] {
            owner.loop.execute(on: owner) { $0.received(byte) }
            owner.loop.execute { owner.assumeIsolated { $0.received(byte + 1) } }
        }
        let runsOnLoop = await withCheckedContinuation { continuation in
            owner.loop.execute(on: owner) { continuation.resume(returning: $0.runsOnLoop) }
        }
        #expect(runsOnLoop)
        #expect(await owner.readable == [1, 2, 3, 4])
    }

    // Only debug builds check this.
    #if DEBUG
    @Test func `a call for an actor of another loop ends the process`() async throws {
        await #expect(processExitsWith: .failure) {
            let owner = Owner(loop: try EventLoop(label: "test"))
            let other = try EventLoop(label: "other")
            other.execute(on: owner) { _ in exit(EXIT_SUCCESS) }
            sleep(60)
        }
    }
    #endif

    @Test func `timers fire in the order of their deadlines and a cancelled one does not`() async throws {
        let loop = try EventLoop(label: "test")
        let fired = Recorder<Int>()
        let now = BootInstant.now
        await withCheckedContinuation { continuation in
            // All in one turn of the loop, so that no timer fires before the last call, however late that is.
            loop.execute {
                loop.schedule(at: now + .milliseconds(30)) { continuation.resume() }
                loop.schedule(at: now + .milliseconds(20)) { fired.record(2) }
                loop.schedule(at: now - .seconds(1)) { fired.record(1) }
                let cancelled = loop.schedule(at: now + .milliseconds(10)) { fired.record(99) }
                loop.cancel(cancelled)
            }
        }
        #expect(fired.values == [1, 2])
    }

    @Test func `timers with the same deadline fire in the order of creation`() async throws {
        let loop = try EventLoop(label: "test")
        let fired = Recorder<Int>()
        let due = BootInstant.now
        // All timers are scheduled in one turn of the loop, so that none fires before the last one is scheduled.
        loop.execute { for number in 0..<5 { loop.schedule(at: due) { fired.record(number) } } }
        try await fired.wait { $0.count == 5 }
        #expect(fired.values == Array(0..<5))
    }

    @Test(arguments: [Int64.min, -1, 0, 1])
    func `a timer whose deadline is long past fires immediately`(nanoseconds: Int64) async throws {
        let loop = try EventLoop(label: "test")
        let fired = Recorder<Bool>()
        loop.schedule(at: BootInstant(nanoseconds: nanoseconds)) { fired.record(true) }
        try await fired.wait { $0.count == 1 }
    }

    @Test func `a ready descriptor is handled before a timer that is due at the same time`() async throws {
        let loop = try EventLoop(label: "test")
        let handled = Recorder<String>()
        let pipe = try ReadPipe(loop) { handled.record("descriptor") }
        loop.runAndWait {
            let due = BootInstant.now
            loop.schedule(at: due) { handled.record("timer") }
            loop.execute { handled.record("work") }
            // The kernel reports the timer first, because it has expired before the pipe becomes readable.
            while due.duration(to: .now) < .milliseconds(5) {}
            write(pipe.output, "x", 1)
        }
        try await handled.wait { $0.count == 3 }
        pipe.close()
        #expect(handled.values.last == "timer")
    }

    @Test func `a limit that passes while the thread does not run is judged after what follows`() async throws
    {
        let loop = try EventLoop(label: "test")
        let fired = Recorder<String>()
        loop.runAndWait {
            let start = BootInstant.now
            _ = loop.scheduleLimit(.zero) { fired.record("limit") }
            let cancelled = loop.scheduleLimit(.zero) { fired.record("cancelled limit") }
            while start.duration(to: .now) < .milliseconds(200) {}
            loop.schedule(at: .now + .milliseconds(20)) {
                fired.record("timer")
                loop.cancel(cancelled)
            }
        }
        try await fired.wait { $0.count == 2 }
        #expect(fired.values == ["timer", "limit"])
    }

    @Test func `data that arrived before a limit passed is read before the limit is judged`() async throws {
        let loop = try EventLoop(label: "test")
        let handled = Recorder<String>()
        let pipe = try ReadPipe(loop) { handled.record("data") }
        loop.runAndWait {
            let start = BootInstant.now
            // The timer makes the next turn look at the limits. Its work takes longer than the limit.
            loop.schedule(at: start) { handled.record("timer") }
            loop.execute {
                write(pipe.output, "x", 1)
                _ = loop.scheduleLimit(.milliseconds(10)) { handled.record("limit") }
                let start = BootInstant.now
                while start.duration(to: .now) < .milliseconds(20) {}
            }
            while start.duration(to: .now) < .milliseconds(5) {}
        }
        try await handled.wait { $0.count == 3 }
        pipe.close()
        #expect(handled.values.filter { $0 != "timer" } == ["data", "limit"])
    }

    @Test func `a timer whose deadline is the end of time does not fire`() async throws {
        let loop = try EventLoop(label: "test")
        let fired = Recorder<Int>()
        loop.schedule(at: BootInstant(nanoseconds: .max)) { fired.record(2) }
        loop.schedule(at: .now + .milliseconds(1)) { fired.record(1) }
        try await fired.wait { $0.count == 1 }
        // The loop has armed its timer for the other deadline in the same turn.
        loop.runAndWait {}
        #expect(fired.values == [1])
    }

    @Test func `the handler of a readable descriptor is called until it is unregistered`() async throws {
        let owner = Owner(loop: try EventLoop(label: "test"))
        var ends: [CInt] = [0, 0]
        try #require(pipe(&ends) == 0)
        let (input, output) = (ends[0], ends[1])
        defer {
            close(input)
            close(output)
        }
        let registration = await withCheckedContinuation { continuation in
            let handle = Recorder<EventLoop.Registration>()
            let registration = try! owner.loop.register(input, for: .read) { _ in
                var byte: UInt8 = 0
                read(input, &byte, 1)
                owner.assumeIsolated { $0.received(byte) }
                if byte == 2, let first = handle.values.first { continuation.resume(returning: first) }
            }
            handle.record(registration)
            for byte: UInt8 in [1, 2] { withUnsafePointer(to: byte) { _ = write(output, $0, 1) } }
        }
        owner.loop.unregister(registration)
        withUnsafePointer(to: 3) { _ = write(output, $0, 1) }
        #expect(await owner.readable == [1, 2])
    }

    @Test(.enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"))
    func `the thread is in its namespace only while it opens sockets`() throws {
        let namespace = try NetworkNamespace()
        let loop = try EventLoop(label: "test", networkNamespace: namespace.path)
        let outside = NetworkNamespace.current
        let inside = namespace.run { NetworkNamespace.current }
        let places = loop.runAndWait {
            [
                NetworkNamespace.current,
                try? loop.inNetworkNamespace { NetworkNamespace.current },
                NetworkNamespace.current,
            ]
        }
        #expect(places == [outside, inside, outside])
        #expect(inside != outside)
    }

    @Test(.enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"))
    func `the thread leaves the namespace after a failure`() throws {
        let namespace = try NetworkNamespace()
        let loop = try EventLoop(label: "test", networkNamespace: namespace.path)
        let outside = NetworkNamespace.current
        let error = SystemError(call: "socket", errno: EMFILE)
        #expect(throws: error) {
            try loop.inNetworkNamespace { () throws(SystemError) in throw error }
        }
        #expect(NetworkNamespace.current == outside)
    }

    @Test func `the error names a missing namespace`() {
        #expect(throws: SystemError(call: "open /no/such/namespace", errno: ENOENT)) {
            _ = try EventLoop(label: "test", networkNamespace: "/no/such/namespace")
        }
    }
}
