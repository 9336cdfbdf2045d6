/// The status codes that a validation accepts.
///
/// The sequence is read once, when the validation is added: a sequence may allow only one pass, but each retry of a
/// request is validated again.
struct AcceptableStatusCodes: Sendable {
    private let codes: Set<Int>

    /// - Parameter codes: Any finite sequence, or a range without an upper bound.
    init(_ codes: some Sequence<Int>) {
        // HTTP status codes have three digits (RFC 9110 §15). A range is clamped, because it may be endless.
        let all = 0..<1000
        switch codes {
        case let range as Range<Int>: self.codes = Set(range.clamped(to: all))
        case let range as ClosedRange<Int>: self.codes = Set(all.filter(range.contains))
        case let range as PartialRangeFrom<Int>: self.codes = Set(all.filter(range.contains))
        default: self.codes = Set(codes)
        }
    }

    func contains(_ code: Int) -> Bool { codes.contains(code) }
}
