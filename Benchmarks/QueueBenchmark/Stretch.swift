internal import BenchmarkSupport
internal import CNetwatchFloors

/// What is measured, from its beginning to ``end(operations:)``: time, processors, the disk. A recorder hears of it.
struct Stretch {
    private let start: Int64
    private let cpu = floors_processor_seconds()
    private let syncs = floors_syncs()
    /// When to end it, a moment of ``now()``.
    let deadline: Int64

    /// - Parameter seconds: How long it may take.
    init(seconds: Double) {
        floors_mark(0)
        start = now()
        deadline = start + Int64(seconds * 1e9)
    }

    /// Prints operations per second, microseconds of a processor for each, and calls of `fsync(2)` for each.
    func end(operations: Int) {
        let (seconds, count) = (Double(now() - start) / 1e9, Double(operations))
        printFigure("rate", count / seconds)
        printFigure("cpu", (floors_processor_seconds() - cpu) / count * 1e6)
        if syncs >= 0 { printFigure("syncs", Double(floors_syncs() - syncs) / count) }
        floors_mark(Int64(operations))
    }
}
