internal import Foundation
internal import OfflineQueue
internal import Testing

/// The validation of a queue's configuration.
@Suite struct ConfigurationTests {
    private let directory = TemporaryDirectory()

    private func refusal(
        of adjust: (inout OfflineQueue.Configuration) -> Void
    ) async throws -> QueueError? {
        var configuration = OfflineQueue.Configuration(directory: directory.path)
        adjust(&configuration)
        do {
            let queue = try await OfflineQueue(
                configuration: configuration,
                sender: FakeSender(),
                gate: FakeGate()
            )
            await queue.stop()
            return nil
        } catch let error as QueueError {
            return error
        }
    }

    private static let refused: [(String, @Sendable (inout OfflineQueue.Configuration) -> Void)] = [
        (
            "`backoffBase` is -5 seconds; it must be 1 millisecond to 366 days",
            { $0.backoffBase = .seconds(-5) }
        ),
        ("`backoffBase` is 0 seconds;", { $0.backoffBase = .zero }),
        ("`backoffBase` is 367 days;", { $0.backoffBase = day * 367 }),
        ("`backoffCap` is 1 second; it must be 2 seconds to 366 days", { $0.backoffCap = .seconds(1) }),
        ("`backoffCap` is 106751991167300 days,", { $0.backoffCap = .seconds(Int64.max) }),
        (
            "`stopTimeout` is -1 nanosecond; it must be 0 seconds to 1 minute",
            { $0.stopTimeout = .nanoseconds(-1) }
        ),
        ("`stopTimeout` is 1 minute, 1 second;", { $0.stopTimeout = .seconds(61) }),
        ("`scanInterval` is 367 days; it must be 0 seconds to 366 days", { $0.scanInterval = day * 367 }),
        (
            "`reconnectSpread` is -1 second; it must be 0 seconds to 366 days",
            { $0.reconnectSpread = .seconds(-1) }
        ),
        (
            "`*.example` is not a host; accepted: a name or an address, without a scheme, a port or `*`",
            { $0.hostWeights = ["*.example": 2] }
        ),
        (
            "`hostWeights` is a dictionary with `A.example` and `a.example`; it must be one with a single weight",
            { $0.hostWeights = ["a.example": 1, "A.example": 2] }
        ),
        (
            "`hostStatusRules` is a dictionary with `A.example` and `a.example`; it must be one with a single set of",
            { $0.hostStatusRules = ["a.example": StatusRules(), "A.example": StatusRules()] }
        ),
        (
            "`laneStatusRules[`l`]`: the retry statuses are `100`; they must be at most 32 statuses and ranges within 200",
            { $0.laneStatusRules = ["l": StatusRules(retry: [100...100])] }
        ),
        (
            "`statusRules`: both the retry",
            { $0.statusRules = StatusRules(retry: [404...404], dead: [400...499]) }
        ),
        (
            "`meteredInterfaces` is `wlan0 `; it must be the name of an interface",
            { $0.meteredInterfaces = ["wlan*", "*", "enp0s31f6*usb*0", "wlan0 "] }
        ),
        ("`meteredInterfaces` is `..`;", { $0.meteredInterfaces = [".."] }),
        ("`inflight` is 0; it must be 1 to 65536", { $0.inflight = 0 }),
        ("`inflightPerLane` is -1; it must be 1 to 65536", { $0.inflightPerLane = -1 }),
        ("`inflightPerOrigin` is 0; it must be 1 to 65536", { $0.inflightPerOrigin = 0 }),
        ("`limits.requests` is 0; it must be 1 or more", { $0.limits.requests = 0 }),
        ("`limits.bytes` is -1; it must be 1 or more", { $0.limits.bytes = -1 }),
        ("`limits.diskReserve` is -1; it must be 0 or more", { $0.limits.diskReserve = -1 }),
        ("`limits.laneShare` is 0.0; it must be more than 0 and at most 1", { $0.limits.laneShare = 0 }),
        ("`limits.laneShare` is 1.5;", { $0.limits.laneShare = 1.5 }),
        ("`limits.laneShare` is nan;", { $0.limits.laneShare = .nan }),
    ]

    @Test func `an invalid setting is refused with the accepted values, and nothing is opened`()
        async throws
    {
        for (words, adjust) in Self.refused {
            let error = try #require(try await refusal(of: adjust), "\(words)")
            #expect(error.code == .invalidConfiguration)
            #expect(error.message.hasPrefix(words), "\(error.message)")
        }
        #expect(directory.permissions() == nil)
    }

    @Test func `the lowest and the highest value of each setting are accepted`() async throws {
        let least = try await refusal {
            ($0.backoffBase, $0.backoffCap, $0.stopTimeout) = (.milliseconds(1), .milliseconds(1), .zero)
            ($0.inflight, $0.inflightPerLane) = (1, 1)
            ($0.limits.requests, $0.limits.bytes, $0.limits.diskReserve) = (1, 1, 0)
            $0.limits.laneShare = .leastNonzeroMagnitude
        }
        #expect(least == nil)
        let most = try await refusal {
            ($0.backoffBase, $0.backoffCap, $0.stopTimeout) = (day * 366, day * 366, .seconds(60))
            ($0.inflight, $0.inflightPerLane) = (65_536, 65_536)
            ($0.limits.requests, $0.limits.bytes, $0.limits.diskReserve) = (.max, .max, .max)
            $0.limits.laneShare = 1
        }
        #expect(most == nil)
    }

    @Test func `the longest backoff does not overflow`() {
        let backoff = Backoff(base: day * 366, cap: day * 366)
        var random = SplitMix64(seed: 1)
        #expect(backoff.delay(after: 64, using: &random) == day * 366)
    }

    @Test func `the store gets the limits and the retention of the configuration`() {
        var configuration = OfflineQueue.Configuration(directory: directory.path)
        configuration.limits.laneShare = 0.25
        configuration.retention.doneCount = 3
        configuration.backoffCap = .seconds(7)
        let settings = StoreSettings(configuration)
        #expect(settings.limits == configuration.limits && settings.retention == configuration.retention)
        #expect(settings.longestDelay == .seconds(7))
    }
}
