internal import OfflineQueue

/// Encodes metrics as requests of the OpenTelemetry protocol over HTTP (OTLP), in its binary form.
///
/// The numbers are those of the fields in `opentelemetry/proto/metrics/v1/metrics.proto` of opentelemetry-proto 1.0. A
/// metric has no unit in the encoding, because its name contains it. A collector that adds units to names would
/// otherwise change the names, which would then differ from those of `/metrics`.
struct OTLPMetrics {
    static let contentType = "application/x-protobuf"
    /// The maximum size of a request: 1 MiB. Collectors accept 20 MiB by default, proxies in front of them often 1 MiB.
    static let mostBytes = 1 << 20
    /// The part of a request that is not checked for each sample: the head of a metric, and the resource.
    private static let headBytes = 8 << 10
    /// The tag and the length of a sample, at most.
    private static let sampleHeadBytes = 6
    /// `AGGREGATION_TEMPORALITY_CUMULATIVE`
    private static let cumulative: UInt64 = 2

    /// Identifies this machine: `service.instance.id` and `host.name`, at most 255 bytes.
    let instance: String
    /// The version of netwatch.
    let version: String
    /// When the counters were 0, in milliseconds since 1970.
    let start: Int64
    /// The time of the values, in milliseconds since 1970. Not before ``start``.
    let time: Int64

    // MARK: Requests

    /// Returns the bodies of the requests with all metrics, each with at most ``mostBytes``. The samples of one metric
    /// may be in several of them.
    func requests(with metrics: [Metric]) -> [[UInt8]] {
        var requests: [[UInt8]] = []
        var scope = emptyScope
        let emptyBytes = scope.bytes.count
        for metric in metrics {
            var samples = metric.samples.map { encoded($0, of: metric) }[...]
            while !samples.isEmpty {
                let room = Self.mostBytes - Self.headBytes - scope.bytes.count
                let fitting = Self.prefix(of: samples, in: room)
                // A single sample is much smaller than a request.
                guard !fitting.isEmpty || scope.bytes.count == emptyBytes else {
                    requests.append(request(scope))
                    scope = emptyScope
                    continue
                }
                let part = fitting.isEmpty ? samples.prefix(1) : fitting
                scope.add(2) { write(metric, part, to: &$0) }
                samples = samples.dropFirst(part.count)
                // A request has each metric once.
                if !samples.isEmpty {
                    requests.append(request(scope))
                    scope = emptyScope
                }
            }
        }
        return scope.bytes.count == emptyBytes ? requests : requests + [request(scope)]
    }

    /// Returns the first samples that fit into a number of bytes.
    private static func prefix(of samples: ArraySlice<[UInt8]>, in room: Int) -> ArraySlice<[UInt8]> {
        var bytes = 0
        return samples.prefix { sample in
            bytes += sample.count + sampleHeadBytes
            return bytes <= room
        }
    }

    /// A message `ScopeMetrics` without metrics.
    private var emptyScope: ProtobufMessage {
        var message = ProtobufMessage()
        message.add(1) { scope in
            scope.add(1, string: "netwatch")
            scope.add(2, string: version)
        }
        return message
    }

    /// The message `ExportMetricsServiceRequest`, which has one `ResourceMetrics`.
    private func request(_ scope: ProtobufMessage) -> [UInt8] {
        let attributes = [
            ("service.name", "netwatch"), ("service.version", version), ("service.instance.id", instance),
            ("host.name", instance),
        ]
        var message = ProtobufMessage()
        message.add(1) { metrics in
            metrics.add(1) { resource in
                for (key, value) in attributes { Self.add(key, value, to: &resource, 1) }
            }
            metrics.add(2, message: scope.bytes)
        }
        return message.bytes
    }

    // MARK: Metrics

    /// Writes the message `Metric` with some of its samples.
    private func write(_ metric: Metric, _ samples: ArraySlice<[UInt8]>, to message: inout ProtobufMessage) {
        message.add(1, string: metric.name)
        message.add(2, string: metric.help)
        let field: UInt64 =
            switch metric.kind {
            case .gauge: 5
            case .counter: 7
            case .histogram: 9
            }
        message.add(field) { data in
            for sample in samples { data.add(1, message: sample) }
            if metric.kind != .gauge { data.add(2, varint: Self.cumulative) }
            // A counter is a sum that is monotonic.
            if metric.kind == .counter { data.add(3, varint: 1) }
        }
    }

    /// Returns the message `NumberDataPoint` or `HistogramDataPoint`.
    private func encoded(_ sample: Metric.Sample, of metric: Metric) -> [UInt8] {
        var point = ProtobufMessage()
        if metric.kind != .gauge { point.add(2, fixed64: Self.nanoseconds(start)) }
        point.add(3, fixed64: Self.nanoseconds(time))
        let attributes: UInt64
        switch sample.value {
        case .number(let value):
            attributes = 7
            point.add(4, double: value)
        case .durations(let histogram):
            attributes = 9
            Self.add(histogram, to: &point)
        }
        for (key, value) in sample.labels.sorted(by: { $0.key < $1.key }) {
            Self.add(key, value, to: &point, attributes)
        }
        return point.bytes
    }

    private static func add(_ histogram: DurationHistogram, to point: inout ProtobufMessage) {
        let sums = histogram.countsUpToLimits + [histogram.count]
        let counts = zip(sums, [0] + sums).map { UInt64($0 - $1) }
        point.add(4, fixed64: UInt64(histogram.count))
        point.add(5, double: histogram.sum / .seconds(1))
        point.add(6, packed: counts)
        point.add(7, packed: histogram.limits.map { ($0 / .seconds(1)).bitPattern })
    }

    /// Adds a message `KeyValue` with a string.
    private static func add(
        _ key: String,
        _ value: String,
        to message: inout ProtobufMessage,
        _ field: UInt64
    ) {
        message.add(field) { pair in
            pair.add(1, string: key)
            pair.add(2) { $0.add(1, string: value) }
        }
    }

    /// A time before 1970, which only a wrong clock has, counts as 1970.
    private static func nanoseconds(_ milliseconds: Int64) -> UInt64 {
        UInt64(max(0, milliseconds)) * 1_000_000
    }
}

/// Writes a message in the binary format of Protocol Buffers: https://protobuf.dev/programming-guides/encoding/.
///
/// It has the types of fields that ``OTLPMetrics`` needs. Fields are written in the order of the calls, also those with
/// their default value.
struct ProtobufMessage {
    /// How the value of a field is encoded.
    private enum WireType: UInt64 {
        case varint = 0
        case fixed64 = 1
        /// A length, and as many bytes.
        case bytes = 2
    }

    private(set) var bytes: [UInt8] = []

    mutating func add(_ field: UInt64, varint value: UInt64) {
        addTag(field, .varint)
        addVarint(value)
    }

    mutating func add(_ field: UInt64, fixed64 value: UInt64) {
        addTag(field, .fixed64)
        addFixed64(value)
    }

    mutating func add(_ field: UInt64, double value: Double) {
        add(field, fixed64: value.bitPattern)
    }

    /// Adds a packed repeated field.
    mutating func add(_ field: UInt64, packed values: [UInt64]) {
        addTag(field, .bytes)
        addVarint(UInt64(values.count * MemoryLayout<UInt64>.size))
        for value in values { addFixed64(value) }
    }

    mutating func add(_ field: UInt64, string value: String) {
        add(field, message: Array(value.utf8))
    }

    /// Adds an encoded message.
    mutating func add(_ field: UInt64, message: [UInt8]) {
        addTag(field, .bytes)
        addVarint(UInt64(message.count))
        bytes += message
    }

    /// Adds a message that a closure writes.
    mutating func add(_ field: UInt64, _ write: (inout ProtobufMessage) -> Void) {
        var message = ProtobufMessage()
        write(&message)
        add(field, message: message.bytes)
    }

    private mutating func addTag(_ field: UInt64, _ type: WireType) {
        addVarint(field << 3 | type.rawValue)
    }

    /// Writes 7 bits in each byte, the lowest first. The highest bit of a byte says that another one follows.
    private mutating func addVarint(_ value: UInt64) {
        var rest = value
        while rest > 0x7f {
            bytes.append(UInt8(rest & 0x7f) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    private mutating func addFixed64(_ value: UInt64) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }
}
