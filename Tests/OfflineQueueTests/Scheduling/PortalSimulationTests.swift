internal import Testing

@testable internal import OfflineQueue

/// A month with outages and captive portals, in virtual time.
@Suite struct PortalSimulationTests {
    /// The faults that a test injects into the scheduler, and the violation that each of them must cause.
    enum Fault: String, CaseIterable {
        case noProbes = "a request is sent to a portal that was seen"
        case noCanary = "a lane sends more than its canary after a portal"
        case noRamp = "the ramp after a portal starts with more than 4"

        func inject(into settings: inout Scheduler.Settings) {
            switch self {
            case .noProbes: settings.checksPortals = false
            case .noCanary: settings.canaryTime = .zero
            case .noRamp: settings.rampStart = .max
            }
        }
    }

    private func simulate(_ fault: Fault? = nil) -> (network: PortalSimulation, unfinished: Int) {
        var random = SplitMix64(seed: 5)
        var (outages, portals) = ([PortalSimulation.Period](), [PortalSimulation.Period]())
        var now = Moment.seconds(600)
        for number in 0..<200 {
            let end = now + random.uniform(.seconds(60) ... .seconds(3600))
            outages.append(.init(start: now, end: end))
            // After every second outage, a portal is there when the link returns; after every fourth, it appears later.
            let length = random.uniform(.seconds(30) ... .seconds(1800))
            let later = random.uniform(.seconds(60) ... .seconds(600))
            if number % 2 == 0 { portals.append(.init(start: end, end: end + length)) }
            if number % 4 == 1 { portals.append(.init(start: end + later, end: end + later + length)) }
            now = end + .seconds(2500) + random.uniform(.zero ... .seconds(7200))
        }
        let network = PortalSimulation(seed: 6, outages: outages, portals: portals)
        var settings = Scheduler.Settings()
        settings.checksPortals = true
        fault?.inject(into: &settings)
        var fleet = FleetSimulation(network)
        let lanes = (PortalSimulation.plain.lowerBound...PortalSimulation.secure.upperBound).map { id in
            let scheme = PortalSimulation.plain.contains(id) ? "http" : "https"
            let origin = Origin(scheme: scheme, host: "h\(id)", port: 80)
            return Scheduler.LaneInfo(id: id, origin: origin, mode: id == 5 ? .fifo : .parallel)
        }
        fleet.addQueue(settings, seed: 7, lanes: lanes, gate: .reachable(generation: 0, route: 1))
        for (index, outage) in outages.enumerated() {
            fleet.turn(.notReachable, at: outage.start)
            fleet.turn(.reachable(generation: UInt64(index + 1), route: 1), at: outage.end)
            for lane in lanes { fleet.enqueue(20, lane: lane.id, at: outage.end - .seconds(1)) }
        }
        for portal in portals {
            let middle = portal.start + (portal.end - portal.start) / 2
            for lane in lanes { fleet.enqueue(20, lane: lane.id, at: middle) }
        }
        fleet.run(until: now + .seconds(86_400))
        return (fleet.network, fleet.unfinished)
    }

    @Test
    func `portals get no request after they were seen, and their end is handled like that of an outage`() {
        let (network, unfinished) = simulate()
        #expect(network.violations == [])
        #expect(unfinished == 0 && network.portalsSeen == 150)
    }

    @Test(arguments: Fault.allCases)
    func `the simulation detects each fault`(fault: Fault) {
        #expect(simulate(fault).network.violations.contains(fault.rawValue))
    }
}
