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
