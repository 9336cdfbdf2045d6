internal import CNetwatchTOML
internal import ClientCore
internal import NetwatchEventLoop

/// A position in a file. The first line and the first column are 1.
struct TOMLPosition: Hashable, Sendable {
    let line: UInt32
    let column: UInt32
}

/// A value of a TOML document, with its position.
struct TOMLNode: Hashable, Sendable {
    indirect enum Value: Hashable, Sendable {
        case string(String)
        case integer(Int64)
        case float(Double)
        case boolean(Bool)
        /// A date or a time, which no setting has.
        case time
        case array([TOMLNode])
        /// In the order of the document.
        case table([(key: String, node: TOMLNode)])

        static func == (left: Value, right: Value) -> Bool { left.text == right.text }

        func hash(into hasher: inout Hasher) { hasher.combine(text) }
    }

    let value: Value
    /// The position of the key, or of the value in an array.
    let position: TOMLPosition
}

/// A document that is not valid TOML.
struct InvalidTOML: Error, Hashable {
    let message: String
    let position: TOMLPosition
}

extension TOMLNode {
    /// Parses a document. The root is a table.
    ///
    /// - Throws: ``InvalidTOML`` with the first fault. toml++ stops there, and offers no way to continue behind it.
    static func parse(_ document: [UInt8]) throws(InvalidTOML) -> TOMLNode {
        let builder = TOMLBuilder()
        document.withUnsafeBytes { bytes in
            netwatch_toml_read(
                bytes.assumingMemoryBound(to: CChar.self).baseAddress,
                bytes.count,
                Unmanaged.passUnretained(builder).toOpaque(),
                { context, event in
                    guard let context, let event = event?.pointee else { return }
                    Unmanaged<TOMLBuilder>.fromOpaque(context).takeUnretainedValue().take(event)
                },
                { context, message, line, column in
                    guard let context else { return }
                    let builder = Unmanaged<TOMLBuilder>.fromOpaque(context).takeUnretainedValue()
                    let text = message.map { String(cString: $0) } ?? "not valid TOML"
                    builder.failure = InvalidTOML(
                        message: text,
                        position: TOMLPosition(line: line, column: column)
                    )
                }
            )
        }
        if let failure = builder.failure { throw failure }
        return builder.root ?? TOMLNode(value: .table([]), position: TOMLPosition(line: 1, column: 1))
    }
}

/// Builds the tree from the calls of the parser.
private final class TOMLBuilder {
    private struct Container {
        let key: String?
        let isTable: Bool
        let position: TOMLPosition
        var children: [(key: String, node: TOMLNode)] = []

        var node: TOMLNode {
            let sorted = children.sorted { $0.node.position < $1.node.position }
            let value: TOMLNode.Value = isTable ? .table(sorted) : .array(children.map(\.node))
            return TOMLNode(value: value, position: position)
        }
    }

    private var open: [Container] = []
    var root: TOMLNode?
    var failure: InvalidTOML?

    func take(_ event: netwatch_toml_event) {
        let position = TOMLPosition(line: event.line, column: event.column)
        let key = event.key.map { Self.text($0, event.key_length) }
        switch event.kind {
        case NETWATCH_TOML_TABLE: open.append(Container(key: key, isTable: true, position: position))
        case NETWATCH_TOML_ARRAY: open.append(Container(key: key, isTable: false, position: position))
        case NETWATCH_TOML_END:
            guard let closed = open.popLast() else { return }
            add(closed.node, key: closed.key)
        default: add(TOMLNode(value: Self.value(event), position: position), key: key)
        }
    }

    private func add(_ node: TOMLNode, key: String?) {
        guard !open.isEmpty else {
            root = node
            return
        }
        open[open.count - 1].children.append((key ?? "", node))
    }

    private static func value(_ event: netwatch_toml_event) -> TOMLNode.Value {
        switch event.kind {
        case NETWATCH_TOML_STRING: .string(event.text.map { text($0, event.text_length) } ?? "")
        case NETWATCH_TOML_INTEGER: .integer(event.integer)
        case NETWATCH_TOML_FLOAT: .float(event.number)
        case NETWATCH_TOML_BOOLEAN: .boolean(event.integer != 0)
        default: .time
        }
    }

    private static func text(_ bytes: UnsafePointer<CChar>, _ count: Int) -> String {
        String(decoding: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
    }
}

extension TOMLPosition: Comparable {
    static func < (left: TOMLPosition, right: TOMLPosition) -> Bool {
        (left.line, left.column) < (right.line, right.column)
    }
}

extension TOMLNode.Value {
    /// The strings of an array of strings; `nil` for any other value.
    var texts: [String]? {
        guard case .array(let nodes) = self else { return nil }
        var texts: [String] = []
        for node in nodes {
            guard case .string(let text) = node.value else { return nil }
            texts.append(text)
        }
        return texts
    }
}

// MARK: - Text

extension TOMLNode.Value {
    /// The value as TOML.
    var text: String { text { $0 } }

    /// The value as TOML for reports, without the secrets of its URLs.
    var textWithoutSecrets: String { text(RedactedURL.text(of:)) }

    /// - Parameter change: Returns what is written instead of a string or a key.
    func text(_ change: (String) -> String) -> String {
        switch self {
        case .string(let text): Self.quoted(change(text))
        case .integer(let number): "\(number)"
        case .float(let number): "\(number)"
        case .boolean(let flag): "\(flag)"
        case .time: "a date or time"
        case .array(let nodes): "[" + nodes.map { $0.value.text(change) }.joined(separator: ", ") + "]"
        case .table(let entries):
            "{ "
                + entries.map { "\(Self.key(change($0.key))) = \($0.node.value.text(change))" }
                .joined(separator: ", ") + " }"
        }
    }

    /// What kind of value it is, for messages.
    var kind: String {
        switch self {
        case .string: "a string"
        case .integer: "an integer"
        case .float: "a float"
        case .boolean: "a boolean"
        case .time: "a date or time"
        case .array: "an array"
        case .table: "a table"
        }
    }

    /// A key, in quotes if it needs them.
    static func key(_ name: String) -> String {
        let isBare =
            !name.isEmpty
            && name.utf8.allSatisfy { byte in
                UInt8(ascii: "-") == byte || UInt8(ascii: "_") == byte
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                    || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
            }
        return isBare ? name : quoted(name)
    }

    static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\t": result += "\\t"
            case _ where scalar.isPrintable: result.unicodeScalars.append(scalar)
            default:
                let digits = String(scalar.value, radix: 16)
                let (letter, length) = digits.count > 4 ? ("U", 8) : ("u", 4)
                result += "\\\(letter)" + String(repeating: "0", count: length - digits.count) + digits
            }
        }
        return result + "\""
    }
}
