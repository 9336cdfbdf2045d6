internal import Testing

/// Decodes requests of the OpenTelemetry protocol (OTLP) with a program that shares no code with the encoder under test.
package enum OTLPDecoder {
    /// Returns lines with the content of `ExportMetricsServiceRequest` messages: the resource, the scope, and each metric
    /// with its points. A point has its attributes, its start, its time and its values.
    ///
    /// A message with an unknown field, a wrong type of a field, or a missing byte fails the test.
    package static func lines(of requests: [[UInt8]]) async throws -> [String] {
        let directory = try ScratchDirectory()
        let paths = try requests.enumerated().map { try directory.write($1, to: "request-\($0)") }
        let outcome = try await Subprocess("/usr/bin/python3", ["-c", program] + paths).outcome()
        try #require(outcome.ending == .exited(0), "\(outcome.errors.joined(separator: "\n"))")
        return outcome.output
    }

    /// The table has the fields of opentelemetry-proto 1.0 that a sender of metrics may use. `[]` is a repeated field; a
    /// repeated number is packed.
    private static let program = #"""
        import struct, sys

        FIELDS = {
            "ExportMetricsServiceRequest": {1: ("resource_metrics", "ResourceMetrics[]")},
            "ResourceMetrics": {1: ("resource", "Resource"), 2: ("scope_metrics", "ScopeMetrics[]"),
                                3: ("schema_url", "string")},
            "Resource": {1: ("attributes", "KeyValue[]")},
            "ScopeMetrics": {1: ("scope", "InstrumentationScope"), 2: ("metrics", "Metric[]"),
                             3: ("schema_url", "string")},
            "InstrumentationScope": {1: ("name", "string"), 2: ("version", "string")},
            "Metric": {1: ("name", "string"), 2: ("description", "string"), 3: ("unit", "string"),
                       5: ("gauge", "Gauge"), 7: ("sum", "Sum"), 9: ("histogram", "Histogram")},
            "Gauge": {1: ("data_points", "NumberDataPoint[]")},
            "Sum": {1: ("data_points", "NumberDataPoint[]"), 2: ("aggregation_temporality", "enum"),
                    3: ("is_monotonic", "bool")},
            "Histogram": {1: ("data_points", "HistogramDataPoint[]"), 2: ("aggregation_temporality", "enum")},
            "NumberDataPoint": {2: ("start_time_unix_nano", "fixed64"), 3: ("time_unix_nano", "fixed64"),
                                4: ("as_double", "double"), 6: ("as_int", "sfixed64"),
                                7: ("attributes", "KeyValue[]"), 8: ("flags", "uint32")},
            "HistogramDataPoint": {2: ("start_time_unix_nano", "fixed64"), 3: ("time_unix_nano", "fixed64"),
                                   4: ("count", "fixed64"), 5: ("sum", "double"),
                                   6: ("bucket_counts", "fixed64[]"), 7: ("explicit_bounds", "double[]"),
                                   9: ("attributes", "KeyValue[]"), 10: ("flags", "uint32"),
                                   11: ("min", "double"), 12: ("max", "double")},
            "KeyValue": {1: ("key", "string"), 2: ("value", "AnyValue")},
            "AnyValue": {1: ("string_value", "string")},
        }
        FORMATS = {"fixed64": "<Q", "sfixed64": "<q", "double": "<d"}

        def varint(data, place):
            value = shift = 0
            while True:
                byte = data[place]
                place += 1
                value |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    return value, place

        def decode(data, message):
            values, place = {}, 0
            while place < len(data):
                tag, place = varint(data, place)
                name, kind = FIELDS[message][tag >> 3]
                wire, single, many = tag & 7, kind.removesuffix("[]"), kind.endswith("[]")
                if wire == 0:
                    assert kind in ("enum", "bool", "uint32"), (message, name)
                    value, place = varint(data, place)
                elif wire == 1:
                    assert kind in FORMATS, (message, name)
                    value, place = struct.unpack(FORMATS[kind], data[place:place + 8])[0], place + 8
                else:
                    assert wire == 2, (message, name)
                    length, place = varint(data, place)
                    part, place = data[place:place + length], place + length
                    assert len(part) == length, (message, name)
                    if many and single in FORMATS:
                        value = [number[0] for number in struct.iter_unpack(FORMATS[single], part)]
                    elif single == "string":
                        value = part.decode("utf-8")
                    else:
                        value = decode(part, single)
                if many and single in FIELDS:
                    values.setdefault(name, []).append(value)
                else:
                    assert name not in values, (message, name)
                    values[name] = value
            return values

        def attributes(values):
            return " ".join(f"{pair['key']}={pair['value']['string_value']}" for pair in values.get("attributes", []))

        def text(point):
            numbers = [str(point.get("start_time_unix_nano", "-")), str(point["time_unix_nano"])]
            names = ["as_double"] if "as_double" in point else ["count", "sum", "bucket_counts", "explicit_bounds"]
            return " ".join([f"{{{attributes(point)}}}"] + numbers + [str(point[name]) for name in names])

        for path in sys.argv[1:]:
            with open(path, "rb") as file:
                request = decode(file.read(), "ExportMetricsServiceRequest")
            for resource in request["resource_metrics"]:
                print("resource", attributes(resource["resource"]))
                for scope in resource["scope_metrics"]:
                    print("scope", scope["scope"]["name"], scope["scope"]["version"])
                    for metric in scope["metrics"]:
                        kind, = {"gauge", "sum", "histogram"} & set(metric)
                        rest = {key: value for key, value in metric[kind].items() if key != "data_points"}
                        print(kind, metric["name"], metric.get("unit"), rest, metric["description"])
                        for point in metric[kind]["data_points"]:
                            print(text(point))
        """#
}
