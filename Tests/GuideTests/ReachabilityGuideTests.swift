import ClientCore
import Foundation
import NetwatchTestSupport
import Testing

/// The example in the guides' section "Network Reachability", with the closures of a program in Swift 5 mode: they
/// capture and change local variables.
@Suite(.timeLimit(.minutes(5))) struct ReachabilityGuideTests {
    /// Starts listening. This function is not `async`: in an `async` function, the compiler also warns about closures
    /// that are assigned to a `@preconcurrency` property.
    private func listen(
        _ manager: NetworkReachabilityManager,
        _ called: Recorder<Void>
    ) -> () -> [NetworkReachabilityManager.NetworkReachabilityStatus] {
        var statuses: [NetworkReachabilityManager.NetworkReachabilityStatus] = []
        manager.listenerQueue = DispatchQueue(label: "listener")
        manager.listener = { status in
            statuses.append(status)
            called.record(())
        }
        manager.startListening()
        return { statuses }
    }

    @Test func `the first getter has the status of localhost, without listening`() throws {
        let manager = try #require(NetworkReachabilityManager(host: "localhost"))
        #expect(manager.isReachable)
        #expect(manager.networkReachabilityStatus == .reachable(.ethernetOrWiFi))
    }

    @Test func `a listener may change a local variable`() async throws {
        let manager = try #require(NetworkReachabilityManager(host: "localhost"))
        let called = Recorder<Void>()
        let statuses = listen(manager, called)
        try await called.wait { $0.count == 1 }
        manager.listenerQueue.sync { manager.stopListening() }
        #expect(statuses() == [.reachable(.ethernetOrWiFi)])
    }

    @Test func `the other closures may change local variables, too`() async throws {
        let manager = try #require(NetworkReachabilityManager(host: "127.0.0.1"))
        let (called, queue) = (Recorder<Void>(), DispatchQueue(label: "listener"))
        var count = 0
        let listening = manager.addListener(onQueue: queue) { _ in
            count += 1
            called.record(())
        }
        manager.startListening(onQueue: queue) { _ in
            count += 1
            called.record(())
        }
        try await called.wait { $0.count == 2 }
        queue.sync {
            manager.stopListening()
            listening.cancel()
        }
        #expect(count == 2)
    }
}
