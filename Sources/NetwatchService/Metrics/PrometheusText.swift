internal import OfflineQueue

/// Encodes metrics in the Prometheus text format, version 0.0.4.
struct PrometheusText {
    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    private(set) var text = ""

    init(_ metrics: [Metric]) {
        for metric in metrics { add(metric) }
    }

    private mutating func add(_ metric: Metric) {
        let name = metric.name
        text += "# HELP \(name) \(metric.help)\n# TYPE \(name) \(metric.kind.rawValue)\n"
        for sample in metric.samples {
            switch sample.value {
            case .number(let value): addLine(name, sample.labels, value)
            case .durations(let histogram): addLines(name, sample.labels, histogram)
            }
        }
    }

    private mutating func addLines(_ name: String, _ labels: Metric.Labels, _ histogram: DurationHistogram) {
        let limits = histogram.limits.map { Self.text(of: $0 / .seconds(1)) } + ["+Inf"]
        for (limit, count) in zip(limits, histogram.countsUpToLimits + [histogram.count]) {
            addLine("\(name)_bucket", labels.merging(["le": limit]) { $1 }, Double(count))
        }
        addLine("\(name)_sum", labels, histogram.sum / .seconds(1))
        addLine("\(name)_count", labels, Double(histogram.count))
    }

    private mutating func addLine(_ name: String, _ labels: Metric.Labels, _ value: Double) {
        text += "\(name)\(Self.text(of: labels)) \(Self.text(of: value))\n"
    }

    private static func text(of labels: Metric.Labels) -> String {
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
