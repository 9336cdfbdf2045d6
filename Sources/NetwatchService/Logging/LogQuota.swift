/// Limits the number of lines in a period, for each host and for all hosts together. One host whose requests fail all
/// the time leaves lines for the others.
struct LogQuota {
    /// The maximum number of lines about one host in a period.
    let linesPerHost: Int
    /// The maximum number of lines in a period.
    let lines: Int

    private var counts: [String: Int] = [:]
    private var total = 0
    private var omitted = 0

    init(linesPerHost: Int, lines: Int) {
        self.linesPerHost = linesPerHost
        self.lines = lines
    }

    /// Counts a line, and returns whether it is within the limits.
    mutating func admits(_ host: String) -> Bool {
        guard total < lines, counts[host, default: 0] < linesPerHost else {
            omitted += 1
            return false
        }
        counts[host, default: 0] += 1
        total += 1
        return true
    }

    /// Begins the next period. Returns the number of lines of the last one that were not within the limits.
    mutating func renew() -> Int {
        defer { self = LogQuota(linesPerHost: linesPerHost, lines: lines) }
        return omitted
    }
}
