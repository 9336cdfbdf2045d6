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
        add(name, help, [([:], histogram)])
    }

    /// Adds a histogram of seconds for each set of labels.
    mutating func add(
        _ name: String,
        _ help: String,
        _ histograms: [(labels: Labels, histogram: DurationHistogram)]
    ) {
        guard !histograms.isEmpty else { return }
        addHead(name, .histogram, help)
        for (labels, histogram) in histograms { addSamples(name, labels, histogram) }
    }

    private mutating func addSamples(_ name: String, _ labels: Labels, _ histogram: DurationHistogram) {
        let limits = histogram.limits.map { Self.text(of: $0 / .seconds(1)) } + ["+Inf"]
        for (limit, count) in zip(limits, histogram.countsUpToLimits + [histogram.count]) {
            addSample("\(name)_bucket", labels.merging(["le": limit]) { $1 }, Double(count))
        }
        addSample("\(name)_sum", labels, histogram.sum / .seconds(1))
        addSample("\(name)_count", labels, Double(histogram.count))
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
