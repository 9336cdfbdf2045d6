internal import BenchmarkSupport
internal import CNetwatchFloors

/// The measured part of a run, until ``end(operations:)``: elapsed time, CPU time and disk syncs. A recorder is
/// notified of it.
struct MeasuredInterval {
    private let start: Int64
    private let cpu = floors_processor_seconds()
    private let syncs = floors_syncs()
    /// The time of ``now()`` at which the measurement must end.
    let deadline: Int64

    /// - Parameter seconds: The maximum duration.
    init(seconds: Double) {
        floors_mark(0)
        start = now()
        deadline = start + Int64(seconds * 1e9)
    }

    /// Prints operations per second, and per operation the CPU time in microseconds and the number of `fsync(2)` calls.
    func end(operations: Int) {
        let (seconds, count) = (Double(now() - start) / 1e9, Double(operations))
        printFigure("rate", count / seconds)
        printFigure("cpu", (floors_processor_seconds() - cpu) / count * 1e6)
        if syncs >= 0 { printFigure("syncs", Double(floors_syncs() - syncs) / count) }
        floors_mark(Int64(operations))
    }
}
