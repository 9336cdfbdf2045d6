internal import OfflineQueue

/// A lane of a ``FleetSimulation``, with its requests.
struct SimulatedLane {
    struct Row {
        let number: Int
        var due: Moment
        var attempts = 0
    }

    let info: Scheduler.LaneInfo
    /// The waiting requests. Those of a parallel lane are in the order of their due times.
    private(set) var waiting: [Row] = []
    var sending: [Int: Row] = [:]

    init(info: Scheduler.LaneInfo) {
        self.info = info
    }

    /// The time at which the next request is due; `nil` if none waits.
    var due: Moment? {
        info.mode == .fifo && !sending.isEmpty ? nil : waiting.first?.due
    }

    mutating func insert(_ row: Row) {
        let isFIFO = info.mode == .fifo
        var (low, high) = (0, waiting.count)
        while low < high {
            let middle = (low + high) / 2
            let other = waiting[middle]
            let isBefore =
                isFIFO ? other.number < row.number : (other.due, other.number) < (row.due, row.number)
            if isBefore { low = middle + 1 } else { high = middle }
        }
        waiting.insert(row, at: low)
    }

    /// Takes due requests as the store does, and postpones retries that the claim does not permit.
    mutating func take(_ claim: Scheduler.Claim, now: Moment) -> [Row] {
        if claim.releasing != nil {
            for index in waiting.indices { waiting[index].due = min(waiting[index].due, now) }
        }
        guard info.mode == .parallel || sending.isEmpty else { return [] }
        var (taken, postponed, retries) = ([Row](), [Row](), 0)
        while taken.count < claim.limit, let first = waiting.first, first.due <= now {
            var row = waiting.removeFirst()
            if let allowance = claim.retries, row.attempts > 0 {
                guard retries < allowance.count else {
                    row.due = now + allowance.wait + .seconds(postponed.count)
                    postponed.append(row)
                    continue
                }
                retries += 1
            }
            taken.append(row)
            sending[row.number] = row
        }
        for row in postponed { insert(row) }
        return taken
    }
}
