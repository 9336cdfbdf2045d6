internal import OfflineQueue

/// A metric with its values, in no format. ``PrometheusText`` and ``OTLPMetrics`` encode it.
struct Metric: Hashable, Sendable {
    /// The types of metrics that are used here.
    enum Kind: String {
        case counter, gauge, histogram
    }

    typealias Labels = [String: String]

    /// A value for one set of labels.
    struct Sample: Hashable {
        enum Value: Hashable {
            case number(Double)
            /// Durations, which are reported in seconds.
            case durations(DurationHistogram)
        }

        let labels: Labels
        let value: Value
    }

    /// The name, which contains the unit, as in Prometheus.
    let name: String
    let kind: Kind
    /// What the metric means, as a sentence.
    let help: String
    let samples: [Sample]
}

/// Collects metrics. One without a value is left out.
struct MetricList {
    private(set) var metrics: [Metric] = []

    /// Adds a metric with one sample for each set of labels.
    mutating func add(
        _ name: String,
        _ kind: Metric.Kind,
        _ help: String,
        _ samples: [(labels: Metric.Labels, value: Double)]
    ) {
        add(name, kind, help, samples.map { Metric.Sample(labels: $0.labels, value: .number($0.value)) })
    }

    /// Adds a metric without labels.
    mutating func add(_ name: String, _ kind: Metric.Kind, _ help: String, _ value: Double?) {
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
        _ histograms: [(labels: Metric.Labels, histogram: DurationHistogram)]
    ) {
        let samples = histograms.map { Metric.Sample(labels: $0.labels, value: .durations($0.histogram)) }
        add(name, .histogram, help, samples)
    }

    private mutating func add(
        _ name: String,
        _ kind: Metric.Kind,
        _ help: String,
        _ samples: [Metric.Sample]
    ) {
        guard !samples.isEmpty else { return }
        metrics.append(Metric(name: name, kind: kind, help: help, samples: samples))
    }
}

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
