/// The source of a request body.
enum BodyInput: Hashable {
    case text(String)
    case file(String)
    case standardInput

    /// Parses an argument as curl(1) does: text, `@FILE`, or `@-` for standard input.
    init(data argument: String) {
        switch argument {
        case "@-": self = .standardInput
        case _ where argument.hasPrefix("@"): self = .file(String(argument.dropFirst()))
        default: self = .text(argument)
        }
    }
}
