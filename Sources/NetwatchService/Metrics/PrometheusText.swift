internal import OfflineQueue

/// Builds a response in the Prometheus text format, version 0.0.4.
struct PrometheusText {
    /// The types of metrics that are used here.
    enum Kind: String {
        case counter, gauge, histogram
    }

    typealias Labels = [String: String]

    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    private(set) var text = ""

    /// Adds a metric with one sample for each set of labels.
    mutating func add(
        _ name: String,
        _ kind: Kind,
        _ help: String,
        _ samples: [(labels: Labels, value: Double)]
    ) {
        guard !samples.isEmpty else { return }
        addHead(name, kind, help)
        for (labels, value) in samples { addSample(name, labels, value) }
    }

    /// Adds a metric without labels.
    mutating func add(_ name: String, _ kind: Kind, _ help: String, _ value: Double?) {
        if let value { add(name, kind, help, [([:], value)]) }
    }

    /// Adds a histogram of seconds without labels.
    mutating func add(_ name: String, _ help: String, _ histogram: DurationHistogram) {
        addHead(name, .histogram, help)
        for (limit, count) in zip(histogram.limits, histogram.countsUpToLimits) {
            addSample("\(name)_bucket", ["le": Self.text(of: limit / .seconds(1))], Double(count))
        }
        addSample("\(name)_bucket", ["le": "+Inf"], Double(histogram.count))
        addSample("\(name)_sum", [:], histogram.sum / .seconds(1))
        addSample("\(name)_count", [:], Double(histogram.count))
    }

    private mutating func addHead(_ name: String, _ kind: Kind, _ help: String) {
        text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
    }

    private mutating func addSample(_ name: String, _ labels: Labels, _ value: Double) {
        text += "\(name)\(Self.text(of: labels)) \(Self.text(of: value))\n"
    }

    private static func text(of labels: Labels) -> String {
        guard !labels.isEmpty else { return "" }
        return "{"
            + labels.sorted { $0.key < $1.key }.map { "\($0.key)=\"\(escaped($0.value))\"" }.joined(
                separator: ","
            ) + "}"
    }

    private static func escaped(_ value: String) -> String {
        value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }

    private static func text(of value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? "\(Int64(value))" : "\(value)"
    }
}
