internal import CNetwatchFaultVFS
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Synchronization

/// A program that runs a queue until it is killed.
///
/// It prints `ready` once its queue is open, `accepted ID KEY` after each request that the queue accepted (`-` for no
/// key), and `drained` at the end. Each line is one `write(2)`, so a printed line is never lost.
@main
struct Victim {
    private let orders: VictimOrders
    private let queue: OfflineQueue

    static func main() async {
        do {
            let orders = try VictimOrders(argument: CommandLine.arguments.last ?? "")
            // Ends the process after 300 s, in case the test that started it is gone.
            alarm(300)
            try await Victim(orders).run()
        } catch {
            say("failed \(error)")
            exit(1)
        }
    }

    private init(_ orders: VictimOrders) async throws {
        self.orders = orders
        try Self.prepareDisk(orders)
        var configuration = OfflineQueue.Configuration(directory: orders.directory)
        // Short delays, because the server fails often and the tests do not check the backoff.
        configuration.backoffBase = .milliseconds(1)
        configuration.backoffCap = .milliseconds(20)
        queue = try await OfflineQueue(configuration: configuration)
    }

    private func run() async throws {
        switch orders.mode {
        case .produce: try await produce()
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

extension Victim {
    private static func prepareDisk(_ orders: VictimOrders) throws {
        guard netwatch_fault_vfs_install() == 0, netwatch_checkpoint_every(orders.checkpointPages) == 0 else {
            throw SystemError(call: "install VFS", errno: EINVAL)
        }
        if let forgetting = orders.forgetting {
            netwatch_forgetting_arm(orders.directory, forgetting.leakedPerMille, forgetting.seed)
        }
        if orders.breakage == .syncsNothing {
            arm(netwatch_fault(calls: NETWATCH_CALL_SYNC, persists: 1), orders)
        }
        if let crash = orders.crash { plan(crash, orders) }
    }

    private static func plan(_ crash: VictimOrders.Crash, _ orders: VictimOrders) {
        if let call = crash.place.call {
            return arm(netwatch_fault(calls: call, first: crash.passage, kills: 1), orders)
        }
        let passages = Atomic(0)
        CrashPoint.install { point in
            guard point.rawValue == crash.place.rawValue else { return }
            let passage = passages.wrappingAdd(1, ordering: .relaxed).newValue
            if passage == crash.passage { kill(getpid(), SIGKILL) }
        }
    }

    private static func arm(_ fault: netwatch_fault, _ orders: VictimOrders) {
        _ = netwatch_fault_arm(orders.directory, fault)
    }
}

extension netwatch_fault {
    fileprivate init(calls: netwatch_call, first: Int = 1, persists: CInt = 0, kills: CInt = 0) {
        self.init(calls: calls.rawValue, result: 0, first: first, persists: persists, kills: kills)
    }
}

extension VictimOrders.Crash.Place {
    /// The VFS call to fail at, or `nil` for a crash point in the queue itself.
    fileprivate var call: netwatch_call? {
        switch self {
        case .write: NETWATCH_CALL_WRITE
        case .sync: NETWATCH_CALL_SYNC
        case .checkpointWrite: NETWATCH_CALL_DATABASE_WRITE
        case .checkpointSync: NETWATCH_CALL_DATABASE_SYNC
        case .bodySynced, .bodyNamed, .beforeCommit, .afterCommit, .claimed, .sending, .answered, .concluded:
            nil
        }
    }
}

// MARK: - Producing

extension Victim {
    private func produce() async throws {
        if orders.sends { try await queue.start() }
        try await releaseLanes()
        Self.say("ready")
        try await withThrowingTaskGroup { group in
            if orders.edits { group.addTask { try await editLanes() } }
            for producer in 0..<orders.producers {
                group.addTask { try await produce(producer) }
            }
            try await group.waitForAll()
        }
        while true { try await Task.sleep(for: .seconds(60)) }
    }

    private func produce(_ producer: Int) async throws {
        var generator = SeededGenerator(seed: orders.seed &+ UInt64(producer))
        for number in orders.firstNumber..<orders.firstNumber + orders.requestsPerProducer {
            let pause = Int.random(in: 0...max(1, orders.longestPause * 1000), using: &generator)
            try await Task.sleep(for: .microseconds(pause))
            try await enqueue(VictimRequest(producer: producer, number: number))
        }
    }

    private func enqueue(_ victim: VictimRequest) async throws {
        if orders.breakage == .reportsEarly { Self.say("accepted \(victim.id) -") }
        let request = QueueRequest(
            method: victim.method,
            url: "\(orders.url)/\(victim.id)",
            body: Data(victim.body)
        )
        var options = EnqueueOptions(lane: victim.lane, isFIFO: victim.isFIFO, id: victim.id)
        options.isAtMostOnce = victim.isAtMostOnce
        options.durability = orders.isDurable ? .full : .normal
        if orders.breakage == .forgetsOrder { options.isFIFO = false }
        let receipt = try await queue.enqueue(request, options: options)
        if orders.breakage != .reportsEarly {
            Self.say("accepted \(victim.id) \(receipt.idempotencyKey ?? "-")")
        }
    }
}

// MARK: - Editing

extension Victim {
    /// Holds and releases all requests of a random FIFO lane, in a loop.
    private func editLanes() async throws {
        var generator = SeededGenerator(seed: ~orders.seed)
        while true {
            let pause = Int.random(in: 1...max(1, orders.longestPause), using: &generator)
            try await Task.sleep(for: .milliseconds(pause))
            let lane = Self.lane(of: Int.random(in: 0..<orders.producers, using: &generator))
            _ = try await queue.hold(matching: lane)
            _ = try await queue.release(matching: lane)
        }
    }

    /// Releases requests that a kill between the hold and the release left held.
    private func releaseLanes() async throws {
        for producer in 0..<orders.producers {
            _ = try await queue.release(matching: Self.lane(of: producer))
        }
    }

    private static func lane(of producer: Int) -> RequestFilter {
        RequestFilter(lane: VictimRequest(producer: producer, number: 1).lane)
    }
}

// MARK: - Draining

extension Victim {
    private func drain() async throws {
        try await queue.start()
        try await releaseLanes()
        Self.say("ready")
        // Checks the counts after each change in the directory: every commit writes to the database files, and the counts
        // are read after the current commit.
        try await until(changesIn: orders.directory) { try await !isBusy }
        Self.say("drained")
    }

    private var isBusy: Bool {
        get async throws {
            let counts = try await queue.counts
            return counts[.pending] + counts[.inflight] + counts[.blocked] > 0
        }
    }
}
