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
