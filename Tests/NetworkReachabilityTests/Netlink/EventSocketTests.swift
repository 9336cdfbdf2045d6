internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchNetlink

/// Receiving the kernel's notifications: their order, and losses.
@Suite(.needsNetworkNamespaces)
struct EventSocketTests {
    private let namespace: NetworkNamespace

    init() throws {
        namespace = try NetworkNamespace()
    }

    private static func route(_ index: Int) -> IPPrefix {
        IPPrefix(IPAddress(bytes: [10, 0, UInt8(index / 256), UInt8(index % 256)])!, length: 32)
    }

    /// Adds the routes with these numbers, in their order.
    private static func addRoutes(_ numbers: Range<Int>) throws {
        let batch = numbers.map { "route add \(route($0)) dev lo" }.joined(separator: "\n")
        try shell("ip -batch - <<'END'\n\(batch)\nEND")
    }

    private func events(_ numbers: Range<Int>) -> [NetlinkEvent] {
        numbers.map { .route(Self.route($0)) }
    }

    @Test func `notifications keep their order from receiving to draining`() throws {
        let (first, needsDraining, rest) = try namespace.run {
            Result {
                let socket = try EventSocket(receiveBufferSize: 1 << 20, classes: [.route])
                try Self.addRoutes(0..<30)
                return (try socket.receive(), socket.needsDraining, try socket.drain())
            }
        }.get()
        #expect(needsDraining)
        #expect(first.events == events(0..<DatagramBuffer.maxCapacity))
        #expect(first.events + rest.events == events(0..<30))
        #expect(!first.isOverrun && !rest.isOverrun)
    }

    @Test func `receiving after an overrun drains the socket`() throws {
        let (lost, next, rest) = try namespace.run {
            Result {
                let socket = try EventSocket(receiveBufferSize: 1, classes: [.route])
                try Self.addRoutes(0..<200)
                let lost = try socket.receive()
                // While the kernel's queue is not empty after an overrun, the kernel drops all notifications.
                try Self.addRoutes(200..<201)
                return (lost, try socket.receive(), try socket.drain())
            }
        }.get()
        #expect(lost.isOverrun)
        #expect(lost.events.count < 200)
        #expect(next.events == events(200..<201))
        #expect(!next.isOverrun)
        #expect(rest == EventSocket.Batch())
    }

    @Test func `nothing is drained after receiving everything without a loss`() throws {
        let (first, needsDraining) = try namespace.run {
            Result {
                let socket = try EventSocket(receiveBufferSize: 1 << 20, classes: [.route])
                try Self.addRoutes(0..<1)
                return (try socket.receive(), socket.needsDraining)
            }
        }.get()
        #expect(first.events == events(0..<1))
        #expect(!needsDraining)
    }

    @Test func `a loss that receiving does not report is detected by draining`() throws {
        let (first, needsDraining, rest, next) = try namespace.run {
            Result {
                let socket = try EventSocket(receiveBufferSize: 1, classes: [.route])
                try Self.addRoutes(0..<1)
                let first = try socket.receive()
                try Self.addRoutes(1..<200)
                let needsDraining = socket.needsDraining
                let rest = try socket.drain()
                try Self.addRoutes(200..<201)
                return (first, needsDraining, rest, try socket.drain())
            }
        }.get()
        #expect(needsDraining)
        #expect(first.events == events(0..<1))
        #expect(!first.isOverrun)
        #expect(rest.isOverrun)
        #expect(next.events == events(200..<201))
    }
}
