internal import Testing

@testable internal import NetwatchTransport

@Suite struct ConnectionTableTests {
    private let origin = "http://example.com:80"
    private let transfers = (0..<4).map { _ in TransferID() }
    private let table = ConnectionTable()

    private func reserve(_ transfer: Int, isQuiet: Bool = true) -> Bool {
        table.reserve(origin, for: transfers[transfer]) { _ in isQuiet }
    }

    @Test func `a connection carries one transfer at a time`() {
        #expect(!reserve(0))
        table.open(5, to: origin, localPort: 1000, capacity: 1, for: transfers[0])
        #expect(!reserve(1))
        table.release(transfers[0])
        #expect(reserve(1))
        #expect(!reserve(2))
    }

    @Test func `a connection to another origin is not reserved`() {
        table.open(5, to: "https://example.com:443", localPort: 1000, capacity: 1, for: transfers[0])
        table.release(transfers[0])
        #expect(!reserve(1))
    }

    @Test func `an idle connection with data to read is not reserved again`() {
        table.open(5, to: origin, localPort: 1000, capacity: 1, for: transfers[0])
        table.release(transfers[0])
        #expect(!reserve(1, isQuiet: false))
        #expect(!reserve(1))
    }

    @Test func `a reserved connection is free again if libcurl selects another one`() {
        table.open(5, to: origin, localPort: 1000, capacity: 1, for: transfers[0])
        table.open(6, to: origin, localPort: 1001, capacity: 1, for: transfers[1])
        table.release(transfers[0])
        table.release(transfers[1])
        #expect(reserve(2))
        // Either connection may have been reserved. When each transfer has taken one, both must be in use.
        table.use(by: transfers[2], origin, localPort: 1001)
        #expect(reserve(3))
        table.use(by: transfers[3], origin, localPort: 1000)
        #expect(!reserve(0))
        table.release(transfers[2])
        #expect(reserve(0))
    }

    @Test func `a shared connection belongs to no transfer alone`() {
        table.open(5, to: origin, localPort: 1000, capacity: 100, for: transfers[0])
        #expect(table.connection(onlyOf: transfers[0]) == 5)
        #expect(reserve(1))
        #expect(table.connection(onlyOf: transfers[0]) == nil)
        #expect(table.connection(onlyOf: transfers[1]) == nil)
        table.release(transfers[0])
        #expect(table.connection(onlyOf: transfers[1]) == 5)
    }

    @Test func `a closed connection is not mistaken for the next one with its descriptor`() {
        table.open(5, to: origin, localPort: 1000, capacity: 100, for: transfers[0])
        table.close(5)
        table.open(5, to: origin, localPort: 1001, capacity: 100, for: transfers[1])
        #expect(table.connection(of: transfers[0]) == nil)
        #expect(table.connection(onlyOf: transfers[1]) == 5)
    }

    @Test func `an HTTP/2 connection carries as many transfers as it may, quiet or not`() {
        table.open(5, to: origin, localPort: 1000, capacity: 100, for: transfers[0])
        table.setCapacity(ofConnectionOf: transfers[0], to: 3)
        #expect(reserve(1, isQuiet: false))
        #expect(reserve(2, isQuiet: false))
        #expect(!reserve(3))
        for transfer in transfers { table.release(transfer) }
        #expect(reserve(3, isQuiet: false))
    }

    @Test func `a connection that libcurl did not select has no free capacity`() {
        table.open(5, to: origin, localPort: 1000, capacity: 100, for: transfers[0])
        #expect(reserve(1))
        table.reservationWasNotUsed(transfers[1])
        #expect(!reserve(2))
        table.release(transfers[0])
        #expect(reserve(2))
    }

    @Test func `a descriptor number can be reused after its connection was closed`() {
        table.open(5, to: origin, localPort: 1000, capacity: 1, for: transfers[0])
        table.close(5)
        table.open(5, to: origin, localPort: 1001, capacity: 1, for: transfers[1])
        table.release(transfers[0])
        #expect(!reserve(2))
        table.release(transfers[1])
        #expect(reserve(2))
    }

    private func http1Connections(of transfer: TransferID) -> Set<CInt> {
        var connections: Set<CInt> = []
        table.forEachHTTP1Connection(of: transfer, origin) { connections.insert($0) }
        return connections
    }

    @Test func `only a connection without users that speaks HTTP 1 is idle`() {
        table.open(5, to: origin, localPort: 1000, capacity: 100, for: transfers[0])
        #expect(http1Connections(of: transfers[0]).isEmpty)
        table.setCapacity(ofConnectionOf: transfers[0], to: 1)
        #expect(http1Connections(of: transfers[0]) == [5])
        #expect(!table.isIdleHTTP1(5))
        table.release(transfers[0])
        #expect(table.isIdleHTTP1(5) && !table.isIdleHTTP1(6))
    }

    @Test func `a transfer may use any idle unix socket until its own is known`() {
        for index in 0..<3 {
            table.open(CInt(5 + index), to: origin, localPort: 0, capacity: 1, for: transfers[index])
        }
        for index in 0..<2 { table.release(transfers[index]) }
        #expect(table.isIdleHTTP1(5) && table.isIdleHTTP1(6) && !table.isIdleHTTP1(7))
        #expect(table.idleHTTP1Connections(to: origin) == [5, 6])
        table.use(by: transfers[3], origin, localPort: 0)
        #expect(http1Connections(of: transfers[3]) == [5, 6])
        // The transfer uses one of them.
        #expect(!table.isIdleHTTP1(5) && !table.isIdleHTTP1(6))
        #expect(table.idleHTTP1Connections(to: origin).isEmpty)
        table.use(6, by: transfers[3])
        #expect(http1Connections(of: transfers[3]) == [6])
        #expect(table.isIdleHTTP1(5) && !table.isIdleHTTP1(6))
        table.use(5, by: transfers[3])
        #expect(table.connection(of: transfers[3]) == 6)
        table.release(transfers[3])
        #expect(table.isIdleHTTP1(6))
    }

    @Test func `a transfer that ends without a known unix socket leaves all idle`() {
        table.open(5, to: origin, localPort: 0, capacity: 1, for: transfers[0])
        table.release(transfers[0])
        table.use(by: transfers[1], origin, localPort: 0)
        #expect(!table.isIdleHTTP1(5))
        table.release(transfers[1])
        #expect(table.isIdleHTTP1(5))
    }

    @Test func `a connection without free capacity may speak HTTP 2`() {
        table.open(5, to: origin, localPort: 1000, capacity: 100, for: transfers[0])
        table.reservationWasNotUsed(transfers[0])
        #expect(!table.isIdleHTTP1(5))
    }
}
