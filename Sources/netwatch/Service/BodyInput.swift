/// The source of a request body.
enum BodyInput: Hashable {
    case bytes([UInt8])
    case file(ArgumentBytes)
    case standardInput

    /// Parses an argument as curl(1) does: the body itself, `@FILE`, or `@-` for standard input.
    init(data argument: ArgumentBytes) {
        if argument.bytes.first == UInt8(ascii: "@") {
            self.init(file: ArgumentBytes(argument.bytes.dropFirst()))
        } else {
            self = .bytes(argument.bytes)
        }
    }

    /// Parses the name of a file; `-` is standard input.
    init(file name: ArgumentBytes) {
        self = name == ArgumentBytes.standardInput ? .standardInput : .file(name)
    }
}
