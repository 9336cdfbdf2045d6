internal import Testing

@testable internal import ClientCore
@testable internal import NetwatchTransport

/// The event buffer between a transfer and its request's queue.
@Suite struct TransferControlTests {
    private let control: TransferControl

    init() throws {
        control = TransferControl(try TransferEngine())
    }

    private func deliver(_ range: Range<UInt8>, size: Int) -> Bool {
        control.deliver(range.map { .body(BodyPiece([UInt8](repeating: $0, count: size))) })
    }

    private func numbers(_ events: [TransferEvent]) -> [UInt8] {
        events.compactMap { if case .body(let piece) = $0 { piece.bytes[0] } else { nil } }
    }

    @Test func `a few events are taken at once, and the queue is woken once`() {
        #expect(deliver(0..<3, size: 1000))
        #expect(!deliver(3..<5, size: 1000))
        let (events, isMore) = control.take()
        #expect(numbers(events) == [0, 1, 2, 3, 4] && !isMore)
        #expect(deliver(5..<6, size: 1000))
    }

    /// Events that were taken no longer count towards the limit. If all were taken at once, the events of a full buffer
    /// would stay in memory together with as many further events.
    @Test func `many events are taken in parts and in order, and the queue is woken once`() {
        #expect(deliver(0..<100, size: 60_000))
        var (taken, largest, isMore): ([UInt8], Int, Bool) = ([], 0, true)
        while isMore {
            let part = control.take()
            isMore = part.isMore
            taken += numbers(part.events)
            largest = max(largest, part.events.count)
            if taken.count == largest { #expect(!deliver(100..<120, size: 60_000)) }
        }
        #expect(taken == Array(0..<120) && largest <= 18)
        #expect(deliver(0..<1, size: 1))
    }
}
