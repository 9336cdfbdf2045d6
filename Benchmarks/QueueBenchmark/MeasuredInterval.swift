internal import BenchmarkSupport
internal import CNetwatchFloors

/// Measures elapsed time, CPU time and disk syncs from its creation until ``end(operations:)``. If the run is recorded
/// for the floor (`Floors/record.c`), the start and the end are marked in the recording.
struct MeasuredInterval {
    private let start: Int64
    private let cpu = floors_processor_seconds()
    private let syncs = floors_syncs()
    /// The time at which the measured code must end, as returned by `now()`.
    let deadline: Int64

    /// Starts the measurement.
    ///
    /// - Parameter seconds: The maximum duration.
    init(seconds: Double) {
        floors_mark(0)
        start = now()
        deadline = start + Int64(seconds * 1e9)
    }

    /// Ends the measurement. Prints the operations per second, and per operation the CPU time in microseconds and the
    /// number of syncs.
    func end(operations: Int) {
        let (seconds, count) = (Double(now() - start) / 1e9, Double(operations))
        printFigure("rate", count / seconds)
        printFigure("cpu", (floors_processor_seconds() - cpu) / count * 1e6)
        if syncs >= 0 { printFigure("syncs", Double(floors_syncs() - syncs) / count) }
        floors_mark(Int64(operations))
    }
}
