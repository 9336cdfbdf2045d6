internal import CNetwatchFaultVFS
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Synchronization

/// A program that runs a queue until it is killed, for the crash tests.
///
/// It prints these lines, each with a single `write(2)`, so that a kill cannot lose a printed line:
///
/// - `ready` when its queue is open;
/// - `accepted ID KEY` when the queue has accepted a request (`-` if there is no idempotency key);
/// - `drained` when all requests are finished or held, in the mode `drain`.
@main
struct TestProcess {
    private let options: TestProcessOptions
    private let queue: OfflineQueue

    static func main() async {
        do {
            let options = try TestProcessOptions(argument: CommandLine.arguments.last ?? "")
            // Ends the process after 300 s, in case the test that should kill it has ended.
            alarm(300)
            try await TestProcess(options).run()
        } catch {
            say("failed \(error)")
            exit(1)
        }
    }

    private init(_ options: TestProcessOptions) async throws {
        self.options = options
        try Self.prepareDisk(options)
        var configuration = OfflineQueue.Configuration(directory: options.directory)
        // The delays are short and the budget of retries is large, because the server fails often. The tests check
        // neither.
        configuration.backoffBase = .milliseconds(1)
        configuration.backoffCap = .milliseconds(20)
        configuration.retryRate = 1000
        configuration.encryptionKeyFile = options.encryptionKeyFile
        queue = try await OfflineQueue(configuration: configuration)
    }

    private func run() async throws {
        switch options.mode {
        case .produce: try await produce()
        case .convert: try await convert()
        case .drain: try await drain()
        }
        await queue.stop()
    }

    static func say(_ line: String) {
        let bytes = Array("\(line)\n".utf8)
        write(STDOUT_FILENO, bytes, bytes.count)
    }
}

// MARK: - Disk

extension TestProcess {
    private static func prepareDisk(_ options: TestProcessOptions) throws {
        guard netwatch_fault_vfs_install() == 0, netwatch_checkpoint_every(options.checkpointPages) == 0
        else {
            throw SystemError(call: "install VFS", errno: EINVAL)
        }
        if let unsyncedWriteLoss = options.unsyncedWriteLoss {
            netwatch_power_cut_arm(
                options.directory,
                unsyncedWriteLoss.leakedPerMille,
                unsyncedWriteLoss.seed
            )
        }
        if options.fault == .syncsNothing {
            arm(netwatch_fault(calls: NETWATCH_CALL_SYNC, persists: 1), options)
        }
        if let crash = options.crash { plan(crash, options) }
    }

    private static func plan(_ crash: TestProcessOptions.Crash, _ options: TestProcessOptions) {
        if let call = crash.place.call {
            return arm(netwatch_fault(calls: call, first: crash.passage, kills: 1), options)
        }
        let passages = Atomic(0)
        CrashPoint.install { point in
            guard point.rawValue == crash.place.rawValue else { return }
            let passage = passages.wrappingAdd(1, ordering: .relaxed).newValue
            if passage == crash.passage { kill(getpid(), SIGKILL) }
        }
    }

    private static func arm(_ fault: netwatch_fault, _ options: TestProcessOptions) {
        _ = netwatch_fault_arm(options.directory, fault)
    }
}

extension netwatch_fault {
    fileprivate init(calls: netwatch_call, first: Int = 1, persists: CInt = 0, kills: CInt = 0) {
        self.init(calls: calls.rawValue, result: 0, first: first, persists: persists, kills: kills)
    }
}

extension TestProcessOptions.Crash.Place {
    /// The call of the VFS that kills the process; `nil` for a crash point in the queue's own code.
    fileprivate var call: netwatch_call? {
        switch self {
        case .write: NETWATCH_CALL_WRITE
        case .sync: NETWATCH_CALL_SYNC
        case .checkpointWrite: NETWATCH_CALL_DATABASE_WRITE
        case .checkpointSync: NETWATCH_CALL_DATABASE_SYNC
        case .bodySynced, .bodyNamed, .beforeCommit, .afterCommit, .claimed, .sending, .responded, .concluded:
            nil
        }
    }
}

// MARK: - Producing

extension TestProcess {
    private func produce() async throws {
        // An earlier process may have paused the queue.
        if options.encryptionKeyFile != nil { _ = try await queue.resume() }
        if options.sends { try await queue.start() }
        try await releaseLanes()
        Self.say("ready")
        try await withThrowingTaskGroup { group in
            if options.edits { group.addTask { try await editLanes() } }
            for producer in 0..<options.producers {
                group.addTask { try await produce(producer) }
            }
            try await group.waitForAll()
        }
        await waitForCancellation()
    }

    /// Enqueues the requests of a producer, with random pauses between them.
    private func produce(_ producer: Int) async throws {
        var generator = SeededGenerator(seed: options.seed &+ UInt64(producer))
        for number in options.firstNumber..<options.firstNumber + options.requestsPerProducer {
            let pause = Int.random(in: 0...max(1, options.longestPause * 1000), using: &generator)
            try await Task.sleep(for: .microseconds(pause))
            try await enqueue(TestProcessRequest(producer: producer, number: number))
        }
    }

    private func enqueue(_ request: TestProcessRequest) async throws {
        if options.fault == .reportsEarly { Self.say("accepted \(request.id) -") }
        let queued = QueueRequest(
            method: request.method,
            url: "\(options.url)/\(request.id)",
            body: Data(request.body)
        )
        var enqueueOptions = EnqueueOptions(lane: request.lane, isFIFO: request.isFIFO, id: request.id)
        enqueueOptions.isAtMostOnce = request.isAtMostOnce
        enqueueOptions.durability = options.isDurable ? .full : .normal
        if options.hasWebhooks { enqueueOptions.onDone = Webhook(url: "\(options.url)/ended/\(request.id)") }
        if options.fault == .forgetsOrder { enqueueOptions.isFIFO = false }
        let receipt = try await queue.enqueue(queued, options: enqueueOptions)
        if options.fault != .reportsEarly {
            Self.say("accepted \(request.id) \(receipt.idempotencyKey ?? "-")")
        }
    }
}

// MARK: - Converting

extension TestProcess {
    private func convert() async throws {
        // A paused queue makes no attempts, so all commits and body files are those of the conversion.
        _ = try await queue.pause()
        try await queue.start()
        Self.say("ready")
        await waitForCancellation()
    }
}

// MARK: - Editing

extension TestProcess {
    /// Holds and releases all requests of a random FIFO lane, repeatedly and with random pauses.
    private func editLanes() async throws {
        var generator = SeededGenerator(seed: ~options.seed)
        while true {
            let pause = Int.random(in: 1...max(1, options.longestPause), using: &generator)
            try await Task.sleep(for: .milliseconds(pause))
            let lane = Self.lane(of: Int.random(in: 0..<options.producers, using: &generator))
            _ = try await queue.hold(matching: lane)
            _ = try await queue.release(matching: lane)
        }
    }

    /// Releases requests that are still held, because an earlier process was killed between a hold and its release.
    private func releaseLanes() async throws {
        for producer in 0..<options.producers {
            _ = try await queue.release(matching: Self.lane(of: producer))
        }
    }

    private static func lane(of producer: Int) -> RequestFilter {
        RequestFilter(lane: TestProcessRequest(producer: producer, number: 1).lane)
    }
}

// MARK: - Draining

extension TestProcess {
    private func drain() async throws {
        if options.encryptionKeyFile != nil { _ = try await queue.resume() }
        try await queue.start()
        try await releaseLanes()
        Self.say("ready")
        // Reads the counts after each change in the queue's directory. Every commit writes to the database files there,
        // so no change of the counts is missed.
        try await until(changesIn: options.directory) { try await !isBusy }
        Self.say("drained")
    }

    private var isBusy: Bool {
        get async throws {
            let counts = try await queue.counts
            return counts[.pending] + counts[.inflight] + counts[.blocked] > 0
        }
    }
}
