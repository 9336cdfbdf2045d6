internal import BenchmarkSupport
internal import OfflineQueue

/// Measures the memory that the scheduler needs for a lane with a separate origin.
///
/// Arguments: the number of lanes that are added before the measurement, the number of lanes that it adds, and the maximum
/// number of lanes in memory.
enum LaneMemory: Measurement {
    static let name = "lane-memory"

    static func run(_ arguments: [String]) async throws {
        let (first, count, maximum) = (Int(arguments[0])!, Int(arguments[1])!, Int(arguments[2])!)
        var settings = Scheduler.Settings()
        settings.maximumLanes = maximum
        var scheduler = Scheduler(settings: settings, seed: 1)
        add(0..<first, to: &scheduler)
        let before = residentMemory()
        add(first..<first + count, to: &scheduler)
        printFigure("memory", (residentMemory() - before) / Double(count))
        // The scheduler must exist until its memory was measured.
        _ = scheduler.nextWake(now: .zero)
    }

    /// Adds lanes in pages, as the queue does when it starts.
    private static func add(_ lanes: Range<Int>, to scheduler: inout Scheduler) {
        for first in stride(from: lanes.lowerBound, to: lanes.upperBound, by: 500) {
            let page = (first..<min(first + 500, lanes.upperBound)).map { number in
                let origin = Origin(scheme: "https", host: "host-\(number).example", port: 443)
                return Scheduler.LaneRows(
                    .init(id: Int64(number + 1), key: LaneKey(origin: origin)),
                    due: .zero
                )
            }
            _ = scheduler.handle(.lanes(page), now: .zero)
        }
    }
}
