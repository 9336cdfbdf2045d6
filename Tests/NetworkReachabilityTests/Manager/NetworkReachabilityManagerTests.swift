internal import Dispatch
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

private typealias Status = NetworkReachabilityManager.NetworkReachabilityStatus

@Suite struct NetworkReachabilityManagerTests {
    private let queue = DispatchQueue(label: "listener")

    private func manager(_ host: String = "127.0.0.1") throws -> (
        NetworkReachabilityManager, Recorder<Status>
    ) {
        let manager = try #require(NetworkReachabilityManager(host: host))
        let statuses = Recorder<Status>()
        manager.listenerQueue = queue
        manager.listener = { statuses.record($0) }
        return (manager, statuses)
    }

    @Test(arguments: ["127.0.0.1", "localhost", "LocalHost.", "app.localhost"])
    func `the first getter returns the status of an address and of localhost`(host: String) throws {
        // Several times, because the status of a name could arrive in time by chance.
        for _ in 0..<50 {
            let manager = try #require(NetworkReachabilityManager(host: host, monitor: PathMonitor()))
            #expect(manager.networkReachabilityStatus == .reachable(.ethernetOrWiFi))
            #expect(manager.isReachable && manager.isReachableOnEthernetOrWiFi && !manager.isReachableOnWWAN)
        }
    }

    @Test func `localhost is reachable`() async throws {
        let (manager, statuses) = try manager("localhost")
        manager.startListening()
        try await statuses.waitForLast { $0 == .reachable(.ethernetOrWiFi) }
    }

    @Test func `the listener is called on its queue, and again after a restart`() async throws {
        let (manager, statuses) = try manager()
        let key = DispatchSpecificKey<Bool>()
        queue.setSpecific(key: key, value: true)
        let onQueue = Recorder<Bool>()
        manager.listener = {
            onQueue.record(DispatchQueue.getSpecific(key: key) ?? false)
            statuses.record($0)
        }
        #expect(manager.startListening())
        try await statuses.wait { $0.count == 1 }
        manager.stopListening()
        manager.startListening()
        try await statuses.wait { $0.count == 2 }
        #expect(onQueue.values == [true, true])
    }

    @Test func `the listener is not called after stopListening returns on its queue`() async throws {
        for _ in 0..<200 {
            let (manager, statuses) = try manager()
            manager.startListening()
            let seen = queue.sync {
                // When this getter returns, the monitor has enqueued a status. It cannot be delivered yet, because this
                // closure occupies the queue.
                _ = manager.networkReachabilityStatus
                manager.stopListening()
                return statuses.values.count
            }
            queue.sync {}
            #expect(statuses.values.count == seen)
        }
    }

    @Test func `the Alamofire 5 names behave like those of Alamofire 4`() async throws {
        let manager = try NetworkReachabilityManager(validating: "127.0.0.1")
        let (first, second) = (Recorder<Status>(), Recorder<Status>())
        #expect(manager.startListening(onQueue: queue) { first.record($0) })
        try await first.wait { $0 == [.reachable(.ethernetOrWiFi)] }
        // The second listener replaces the first.
        #expect(manager.startListening(onQueue: queue) { second.record($0) })
        try await second.wait { $0 == [.reachable(.ethernetOrWiFi)] }
        #expect(first.values.count == 1)
        #expect(manager.status == manager.networkReachabilityStatus)
        #expect(!manager.isReachableOnCellular)
        #expect(Status.reachable(.cellular) == .reachable(.wwan))
        #expect(NetworkReachabilityManager.default != nil)
    }

    @Test func `several listeners receive the same statuses until each is cancelled`() async throws {
        let manager = try NetworkReachabilityManager(validating: "127.0.0.1")
        let (first, second) = (Recorder<Status>(), Recorder<Status>())
        let listening = manager.addListener(onQueue: queue) { first.record($0) }
        let other = manager.addListener(onQueue: queue) { second.record($0) }
        manager.stopListening()
        try await first.wait { $0.count == 1 }
        try await second.wait { $0.count == 1 }
        listening.cancel()
        other.cancel()
    }

    @Test func `sequences begin with the current status`() async throws {
        let manager = try NetworkReachabilityManager(validating: "127.0.0.1")
        for await status in manager.statuses {
            #expect(status == .reachable(.ethernetOrWiFi))
            break
        }
        for await path in manager.paths {
            #expect(path.path?.isLocal == true)
            #expect("\(path)" == "127.0.0.1: reachable on this machine")
            break
        }
    }

    @Test func `releasing a manager stops its listener`() throws {
        weak var reference: NetworkReachabilityManager?
        let statuses: Recorder<Status>
        do {
            let (manager, recorder) = try manager()
            reference = manager
            statuses = recorder
            queue.sync {
                manager.startListening()
                // When this getter returns, the monitor has enqueued a status. It cannot be delivered before the queue
                // is resumed.
                _ = manager.networkReachabilityStatus
                queue.suspend()
            }
        }
        #expect(reference == nil)
        let seen = statuses.values.count
        queue.resume()
        queue.sync {}
        #expect(statuses.values.count == seen)
    }
}

/// A manager that watches a host over a real veth pair.
@Suite(.needsNetworkNamespaces)
struct NetworkReachabilityManagerTransitionTests {
    @Test func `each transition is reported once, including an offline start`() async throws {
        let testbed = try VethTestbed()
        try testbed.near.ip("link set near0 down")
        let monitor = PathMonitor(configuration: .init(in: testbed.near))
        let manager = try #require(
            NetworkReachabilityManager(host: VethTestbed.farAddress, monitor: monitor)
        )
        let statuses = Recorder<Status>()
        manager.listenerQueue = DispatchQueue(label: "listener")
        manager.listener = { statuses.record($0) }
        manager.startListening()
        try await statuses.wait { $0.count == 1 }
        for round in 1...3 {
            try testbed.near.ip("link set near0 up")
            try await statuses.wait { $0.count == 2 * round }
            try testbed.near.ip("link set near0 down")
            try await statuses.wait { $0.count == 2 * round + 1 }
        }
        let transition: [Status] = [.notReachable, .reachable(.ethernetOrWiFi)]
        #expect(statuses.values == transition + transition + transition + [.notReachable])
    }
}
